// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <c10/core/Device.h>
#include <caf/actor_control_block.hpp>

#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/membership/peer_traffic.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/messages/messages.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::membership {

/// Stores which nodes are up, their addresses, and the traffic between them and this node. Any thread may use it.
///   PD-1  the directory lists a peer from peer_up to peer_down, and again from the next peer_up on. News of an older period
///         change nothing. This node is always listed.
///   PD-2  the directory remembers the last 64 nodes that went away, peers or not. For each it keeps the traffic, the state,
///         and since when and why the node is in this state.
///   PD-3  a member that this node is not connected to is listed from know() to forget(), unless the node is a peer.
///   PD-4  traffic.is_used() returns true if a call to or from the peer is under way, or a message was sent or received within
///         `rest_after`. Otherwise it asks `keeps` whether the two nodes share work, at most once in each `rest_after`. The two
///         nodes may share work without a message between them, because a third node may bring a peer into a context.
///   PD-5  besides the listed nodes, the directory keeps the last 64 nodes that went away. For PD-1 it also keeps the ids of
///         the last 4,096 peers that went down. An id that only a message names leaves no entry.
///   PD-6  each of the first 64 members that this node can't connect to has an entry in traffic.report(). The entry begins with
///         traffic.note_obstacle() with a reason, and ends with traffic.note_obstacle() without one. A peer has no such entry.
class peer_directory {
 public:
  /// `clock`: nanoseconds of a steady clock.
  explicit peer_directory(std::function<std::int64_t()> clock = support::steady_ns) : traffic(std::move(clock)) {}

  peer_traffic traffic;

  /// Says that a peer is up. `period`: see contracts::peer_up. Does nothing if the news is older than the last remove() of the
  /// node.
  void add(const member& who, caf::strong_actor_ptr gateway, std::uint64_t period = 0);
  /// Says that the peer is not up any more. `is_gone`: it is gone, not only unreachable. A peer may become gone after it was
  /// unreachable.
  void remove(node_id id, std::uint64_t period = 0, const std::string& reason = {}, bool is_gone = true);
  void clear();

  /// Lists a member that this node is not connected to, and that is up as other nodes say. Returns whether the directory did
  /// not list the member before.
  bool know(const member& who);
  /// Says that a member that this node is not connected to is not up any more. `is_gone`: it is gone, not only unreachable.
  /// Returns whether the directory listed it as such a member. A member may become gone after it was unreachable.
  bool forget(node_id id, const std::string& reason, bool is_gone);
  /// Whether the directory lists the node: as up, or as a member that this node is not connected to.
  bool is_member(node_id id) const;

  /// The gateway of the node; null if the node is not up.
  contracts::gateway_actor gateway(node_id id) const {
    return of(id, [](const entry& up) { return up.gateway; });
  }
  contracts::gateway_actor gateway(const std::string& name) const;
  /// The id of the node that is up and has this name; empty if there is none.
  std::optional<node_id> find(const std::string& name) const;
  /// The host that the node listens on; empty if the node is not up.
  std::string host(node_id id) const {
    return of(id, [](const entry& up) { return up.who.host; });
  }
  /// The devices that the node has told; empty if it has told none, or is not up.
  std::vector<c10::Device> devices(node_id id) const {
    return of(id, [](const entry& up) { return up.who.devices; });
  }
  /// Whether the node was a peer and is not one now: the node is unreachable or gone. The directory knows the last 4,096 such
  /// nodes.
  bool is_down(node_id id) const;
  /// The name of the node, also of the last 64 nodes that went away. The id as a text if the directory does not know the node.
  std::string name(node_id id) const { return traffic.name(id); }
  /// The nodes that are up, and the members that this node is not connected to.
  std::vector<member> members() const;

  /// The wire formats that the node reads, one bit each (wire_format.hpp); 0 if the node is not up.
  std::uint32_t formats(node_id id) const {
    return of(id, [](const entry& up) { return up.who.formats; });
  }

  /// How many nodes are listed, without this node.
  std::size_t others_listed() const;

  /// How many entries the tables of the directory have (PD-5).
  std::size_t entries() const;

 private:
  struct entry {
    member who;
    contracts::gateway_actor gateway;
  };

  void note_end(node_id id, std::uint64_t period) TROUPE_REQUIRES(mutex_);
  /// The result of `get` for the entry of the node; an empty value if the node is not up.
  template <class Get>
  std::invoke_result_t<Get, const entry&> of(node_id id, Get get) const {
    const checked_lock lock(mutex_);
    const auto found = up_.find(id);
    return found == up_.end() ? std::invoke_result_t<Get, const entry&>{} : get(found->second);
  }

  mutable checked_mutex mutex_;
  std::unordered_map<node_id, entry> up_ TROUPE_GUARDED_BY(mutex_);
  std::unordered_map<std::string, node_id> ids_ TROUPE_GUARDED_BY(mutex_);  // ids of the nodes that are up, by name
  std::unordered_map<node_id, member> known_ TROUPE_GUARDED_BY(mutex_);     // members that this node is not connected to
  // Of nodes that are not up: the period that has ended.
  std::unordered_map<node_id, std::uint64_t> down_ TROUPE_GUARDED_BY(mutex_);
  std::deque<node_id> last_down_ TROUPE_GUARDED_BY(mutex_);     // the keys of down_, the oldest first
  std::uint64_t newest_dropped_ TROUPE_GUARDED_BY(mutex_) = 0;  // the newest period that was dropped from down_
};

}  // namespace troupe::membership
