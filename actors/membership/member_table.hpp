// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <caf/actor_addr.hpp>
#include <caf/actor_control_block.hpp>

#include <troupe/messages/messages.hpp>

namespace troupe::membership {

/// How far a peer's steady clock is ahead of ours, from the heartbeat that was answered fastest. The error bound of an old sample grows
/// a little with each new sample, so that drifting clocks are followed.
class clock_estimate {
 public:
  /// One heartbeat: sent and received on our clock, answered on the peer's; nanoseconds. A heartbeat with impossible times
  /// does not count: a peer may send any.
  void add(std::int64_t sent_ns, std::int64_t answered_ns, std::int64_t received_ns) noexcept;
  bool known() const noexcept { return known_; }
  std::int64_t offset_ns() const noexcept { return offset_ns_; }

 private:
  bool known_ = false;
  std::int64_t offset_ns_ = 0;
  double allowed_ns_ = 0;
};

/// A peer that is up.
struct known_peer {
  member who;
  caf::strong_actor_ptr gateway;
  std::int64_t seen_ns = 0;  // when it last answered, our clock
  int missed = 0;            // heartbeats in a row without an answer
  bool answered = true;      // the last heartbeat
  clock_estimate clock;
};

/// Which nodes are up and which have gone. Decides who may join; sends nothing and asks no clock.
class member_table {
 public:
  static constexpr int allowed_misses = 3;
  /// The most heartbeats in a row that a peer may leave unanswered while other bytes come from it: a minute with the usual heartbeat. By
  /// then calls that wait for its answers have ended too.
  static constexpr int most_misses = 240;

  explicit member_table(member self = {}) : self_(std::move(self)) {}

  const member& self() const noexcept { return self_; }
  void set_port(std::uint16_t port) noexcept { self_.port = port; }

  /// Why this node can't be a peer, whichever nodes are up: no id, no valid name, our own name or id, or a node that has gone. Empty if
  /// it can.
  std::string objection(const member& who) const;

  /// The living peer that holds the name of `who` and is another node; null when the name is free.
  const known_peer* rival(const member& who) const;

  known_peer* find(node_id id);
  known_peer* find_name(const std::string& name);
  known_peer* find_gateway(const caf::actor_addr& gateway);
  const std::unordered_map<node_id, known_peer>& peers() const noexcept { return peers_; }

  known_peer& add(const member& who, caf::strong_actor_ptr gateway, std::int64_t now_ns);

  /// Takes a peer out for good; its id can't come back, its name is free.
  std::optional<known_peer> remove(node_id id, const std::string& reason);

  /// Why a node has gone, or null.
  const std::string* gone(node_id id) const;

  /// A heartbeat is due: returns the peers that left three in a row unanswered, and counts this one for the other peers.
  std::vector<node_id> beat();

  /// The peers by name.
  std::vector<member> members() const;
  /// Their names for a text: "a, b", or "none".
  std::string names() const;

 private:
  member self_;
  std::unordered_map<node_id, known_peer> peers_;
  std::unordered_map<node_id, std::string> gone_;
};

/// "host:port", with brackets around an address of IPv6.
std::string address_text(const std::string& host, std::uint16_t port);

/// "'name' (id) at host:port".
std::string describe(const member& who);

}  // namespace troupe::membership
