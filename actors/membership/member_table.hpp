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

/// How far the steady clock of a peer is ahead of this node's, by the heartbeat with the shortest round trip. The error bound
/// of that heartbeat grows a little with each later one, so the estimate follows clocks that drift.
class clock_estimate {
 public:
  /// Takes in a heartbeat: sent and received by this node's clock, answered by the peer's clock, in nanoseconds. A heartbeat
  /// with impossible times is ignored: a peer may send any numbers.
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
  std::int64_t seen_ns = 0;  // when the peer answered last, by the clock of this node
  int missed = 0;            // heartbeats in a row without an answer
  bool answered = true;      // whether the peer has answered the last heartbeat
  clock_estimate clock;
};

/// Which nodes are up and which have gone. Decides which nodes may join. Sends no message and reads no clock.
class member_table {
 public:
  static constexpr int allowed_misses = 3;
  /// A peer that leaves this many heartbeats in a row unanswered is down, even if other bytes come from it: after a minute by
  /// default. By then calls that wait for its answers have ended too.
  static constexpr int most_misses = 240;

  explicit member_table(member self = {}) : self_(std::move(self)) {}

  const member& self() const noexcept { return self_; }
  void set_port(std::uint16_t port) noexcept { self_.port = port; }

  /// Why `who` can't be a peer, whichever nodes are up: it has no id, no valid name, the name or id of this node, or it has
  /// gone. Empty if it can.
  std::string objection(const member& who) const;

  /// Another peer that is up and has the name of `who`; null if the name is free.
  const known_peer* rival(const member& who) const;

  known_peer* find(node_id id);
  known_peer* find_name(const std::string& name);
  known_peer* find_gateway(const caf::actor_addr& gateway);
  const std::unordered_map<node_id, known_peer>& peers() const noexcept { return peers_; }

  known_peer& add(const member& who, caf::strong_actor_ptr gateway, std::int64_t now_ns);

  /// Removes a peer. Its id can't join again; its name is free.
  std::optional<known_peer> remove(node_id id, const std::string& reason);

  /// Why a node has gone; null if it has not.
  const std::string* gone(node_id id) const;

  /// To be called for each heartbeat, before it is sent. Returns the peers that left the last three or more heartbeats
  /// unanswered.
  std::vector<node_id> beat();

  /// The peers, sorted by name.
  std::vector<member> members() const;
  /// The names of the peers for an error text: "a, b", or "none".
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
