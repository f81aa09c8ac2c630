// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/membership/member_table_test.cpp
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <caf/actor_addr.hpp>
#include <caf/actor_control_block.hpp>

#include <troupe/actors/membership/roster.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::membership {

/// A time as text: "750 ms".
std::string milliseconds_text(std::int64_t ns);

/// An address as text: "host:port", with brackets around an address of IPv6.
std::string address_text(const std::string& host, std::uint16_t port);

/// A member as text: "'name' (id) at host:port".
std::string describe(const member& who);

/// The end of an error text about a name that another node has. It says what to do.
inline constexpr const char* other_name = "; choose another one, and with certificates make it a kit of its own";

/// How far the steady clock of a peer is ahead of this node's clock, measured by the heartbeat with the shortest round trip.
/// The error bound of this heartbeat grows a little with each later heartbeat, so the estimate follows clocks that drift.
class clock_estimate {
 public:
  /// Takes in a heartbeat: sent and received by this node's clock, answered by the peer's clock, in nanoseconds. A heartbeat
  /// with impossible times is ignored, because a peer may send any numbers.
  void add(std::int64_t sent_ns, std::int64_t answered_ns, std::int64_t received_ns) noexcept;
  bool known() const noexcept { return known_; }
  std::int64_t offset_ns() const noexcept { return offset_ns_; }

 private:
  bool known_ = false;
  std::int64_t offset_ns_ = 0;
  double allowed_ns_ = 0;
};

/// How a peer answers heartbeats.
struct signs_of_life {
  int missed = 0;            // heartbeats in a row without an answer
  bool answered = true;      // whether the peer has answered the last heartbeat
  std::int64_t seen_ns = 0;  // when the peer answered last, by the clock of this node
  clock_estimate clock;

  void seen(std::int64_t now_ns) noexcept {
    missed = 0;
    answered = true;
    seen_ns = now_ns;
  }
};

/// When a node is dialled. At most one dial of a node is under way.
struct redialling {
  bool is_under_way = false;
  std::int64_t next_ns = 0;
  std::int64_t pause_ns = 0;  // before the next dial

  bool is_due(std::int64_t now_ns) const noexcept { return !is_under_way && now_ns >= next_ns; }
  /// Begins a dial. Returns false if one is under way already.
  bool begin() noexcept { return !std::exchange(is_under_way, true); }
};

/// A peer that is up or unreachable.
struct known_peer {
  member who;
  caf::strong_actor_ptr gateway;
  bond between;
  std::uint64_t period = 0;  // see contracts::peer_up
  bool is_up = true;         // false: unreachable
  bool is_connected = true;  // whether the connection to `gateway` is open
  std::int64_t lost_ns = 0;  // since when the peer is unreachable
  bool has_hung_up = false;  // whether the connection has ended since the peer was up, without this node's doing
  // News up to this number were compared when the two nodes greeted each other, except news of the end of a member: such a
  // member does not count in a digest.
  std::uint64_t last_news = 0;
  redialling dial;
  signs_of_life signs;
};

/// Stores what this node knows of the other nodes: its peers, the nodes that are gone, and the members that it is not connected
/// to. This class answers questions; the derived class `member_table` changes the content.
class known_members {
 public:
  const roster& heard_of() const noexcept { return roster_; }
  const member& self() const noexcept { return self_; }

  /// Why `who` can't be a peer, whichever nodes are up: it has no id, no valid name, or the name or id of this node. Empty if
  /// it can. `own`: this node, as `who` reaches it.
  std::string objection(const member& who, const member& own) const;

  /// Another peer that is up or unreachable and has the name of `who`; null if no peer has it.
  const known_peer* rival(const member& who) const;
  /// As rival(); but null if `who` is that peer after a restart. An unreachable peer that has the address of `who` has been
  /// restarted, because no two programs listen at one address.
  const known_peer* living_rival(const member& who) const;
  /// Another member that has the name of `who` and is no peer; null if there is none.
  const member* holder(const member& who) const;

  /// The peer, if it is up or unreachable; null otherwise.
  known_peer* find(node_id id);
  const known_peer* find(node_id id) const;
  known_peer* find_gateway(const caf::actor_addr& gateway);
  /// The peer with this name, if it is up.
  const known_peer* find_up(const std::string& name) const;
  const known_peer* find_up(node_id id) const;
  const std::unordered_map<node_id, known_peer>& peers() const noexcept { return peers_; }

  /// The bond of this node with another node.
  bond between(node_id id) const;
  /// Why a node has gone; null if it has not.
  const std::string* gone(node_id id) const;

  /// The news for a node that greets: all news, or none if its digest shows that it has heard the same.
  std::vector<member_news> news_for(node_id who, std::uint64_t digest) const;
  /// Why this node can't connect to the member with this name, or with this id if `name` is empty. Empty if no reason is known.
  std::string obstacle_to(const std::string& name, node_id id) const;
  /// Whether the member is up, peer or not.
  bool is_up(node_id id) const;
  /// The members that are up, peers or not, sorted by name.
  std::vector<member> members() const;
  /// For an error text: the names of the members that are up, "a, b", or "none"; ten of them at most.
  std::string names() const;

 protected:
  struct absent {
    member who;
    bond between;
    std::string reason;
    enum class state { awaited, left, given_up } is = state::given_up;  // an awaited node is dialled (MT-2)
    std::int64_t since_ns = 0;
    redialling dial = {};
  };

  /// A member that is dialled and is no peer yet.
  struct stranger {
    redialling dial;
    bool is_contested = false;     // whether another node has its name
    bool is_tried = false;         // whether this node has dialled it since somebody began to look for it
    bool is_out_of_reach = false;  // whether this node has not connected to it yet, and so does not call it up (MT-5)
    std::string why;               // why this node can't connect to it (MT-10)
    std::int64_t wanted_until_ns = std::numeric_limits<std::int64_t>::min();
  };

  explicit known_members(roster known) : self_(known.self()), roster_(std::move(known)) {}
  bool has_left_or_is_awaited(node_id id) const;

  member self_;
  std::unordered_map<node_id, known_peer> peers_;
  std::unordered_map<node_id, absent> gone_;
  roster roster_;
  std::unordered_map<node_id, stranger> strangers_;
};

}  // namespace troupe::membership
