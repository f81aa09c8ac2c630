// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/membership/peer_directory_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/messages/messages.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::membership {

/// Counts the traffic between this node and the nodes that a peer_directory lists or has listed. Also says with which nodes
/// this node shares work. The directory says who is listed. Any thread may use it. Its promises are PD-2, PD-4 and PD-6 of the
/// directory.
class peer_traffic {
 public:
  /// `clock`: nanoseconds of a steady clock.
  explicit peer_traffic(std::function<std::int64_t()> clock) : clock_(std::move(clock)) {}

  /// Says that the directory lists the node: as a peer, or as a member that this node is not connected to.
  void list(const member& who, bool is_peer);
  /// Says that the directory does not list the node any more. For a node that went away before, only the reason and `is_gone`
  /// change.
  void went_away(node_id id, const std::string& reason, bool is_gone);
  /// Says that the directory lists no node any more.
  void clear();
  /// Says that this node can't connect to a member, which other nodes may reach. `reason`: empty if this node can connect to
  /// the member again.
  void note_obstacle(const member& who, const std::string& reason);

  /// Counts a call to the node or from it as under way, for as long as the result lives.
  std::shared_ptr<void> hold(node_id id) const;
  /// Whether this node shares work with the peer: a call is under way, a message was sent or received within `rest_after`, or
  /// `keeps` returns true. `keeps` is called at most once in `rest_after`, whatever it returned before (MT-4 of member_table).
  bool is_used(node_id id, const std::function<bool()>& keeps) const;
  static constexpr std::int64_t rest_after_ns = 10'000'000'000;

  /// Counts a message to a node or from it, the bytes of its tensors, and the bytes that they would have without compression.
  void sent(node_id to, const std::vector<at::Tensor>& tensors = {}, const std::vector<packing>& packings = {}) const {
    count(true, to, tensors, packings);
  }
  void received(node_id from, const std::vector<at::Tensor>& tensors = {}, const std::vector<packing>& packings = {}) const {
    count(false, from, tensors, packings);
  }
  /// Counts bytes of tensors that this node has read out of the node's memory.
  void read(node_id from, std::uint64_t bytes) const;

  /// Says that tensors of devices go to the peer over the host, until it is listed again. Returns whether this is news.
  bool note_over_the_host(node_id id) const;
  bool is_over_the_host(node_id id) const;

  /// The name of the node, also of the last 64 nodes that went away. The id as a text if the node is not known.
  std::string name(node_id id) const;
  enum class which {
    all,
    connected,  // nodes that are peers or have been peers
  };
  /// State and traffic of each node except `self`: first the nodes that are up, then the nodes that went down, each sorted by
  /// name.
  std::vector<peer_status> report(node_id self, which nodes = which::all) const;
  /// How many entries the tables have (PD-5).
  std::size_t entries() const;

 private:
  struct node {
    peer_status seen;
    bool was_connected = false;
    bool over_the_host = false;  // see note_over_the_host()
  };
  struct use {
    bool is_listed = false;
    std::size_t held = 0;                    // calls under way
    std::int64_t last_ns = -rest_after_ns;   // when the last message or call was, or `keeps` was last true
    std::int64_t asked_ns = -rest_after_ns;  // when `keeps` was last false
  };
  struct uses {
    checked_mutex mutex;
    std::unordered_map<node_id, use> all TROUPE_GUARDED_BY(mutex);  // of nodes that are listed, or have a call under way
  };
  void touch(node_id id) const;
  void count(bool leaves, node_id with, const std::vector<at::Tensor>& tensors, const std::vector<packing>& packings) const;

  const std::function<std::int64_t()> clock_;
  std::shared_ptr<uses> uses_ = std::make_shared<uses>();  // calls may end after the directory
  mutable checked_mutex mutex_;
  // Of the nodes that are listed, and of those in last_away_. `since_ns`: when the node went up or down, by clock_.
  mutable std::unordered_map<node_id, node> traffic_ TROUPE_GUARDED_BY(mutex_);
  std::deque<node_id> last_away_ TROUPE_GUARDED_BY(mutex_);  // the nodes that went away last
  std::unordered_map<node_id, peer_status> out_of_reach_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::membership
