// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <ATen/core/Tensor.h>
#include <caf/actor_control_block.hpp>

#include <troupe/messages/messages.hpp>

namespace troupe::membership {

/// Who is up and where, and what passed between them and this node: written by the node's `peer` actor as news arrives, read by
/// every thread.
///   PD-1  a node is in it from its peer_up to its peer_down and never again; this node is always in it.
///   PD-2  what passed between this node and one that went down is known for the last 64 of those.
class peer_directory {
 public:
  struct entry {
    member who;
    caf::strong_actor_ptr face;
  };

  void add(const member& who, caf::strong_actor_ptr face);
  void remove(node_id id);
  void clear();

  /// The node's face; null if it is not up.
  caf::strong_actor_ptr face(node_id id) const;
  caf::strong_actor_ptr face(const std::string& name) const;
  /// Who has that name and is up.
  std::optional<node_id> find(const std::string& name) const;
  /// Where it listens; empty if it is not up.
  std::string host(node_id id) const;
  /// Whether it was up and is not any more.
  bool is_down(node_id id) const;
  /// Its name, also after it went down; its number if it was never up.
  std::string name(node_id id) const;
  std::vector<member> members() const;

  /// Counts a message to a node or from it, and the bytes of its tensors.
  void sent(node_id to, const std::vector<at::Tensor>& tensors = {}) const;
  void received(node_id from, const std::vector<at::Tensor>& tensors = {}) const;
  void received(const std::string& from, const std::vector<at::Tensor>& tensors) const;

  /// Counts elements that were read out of the node's memory.
  void read(node_id from, std::uint64_t bytes) const;

  /// By name, those that are up first; without `self`.
  std::vector<peer_status> traffic(node_id self) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<node_id, entry> up_;
  std::unordered_map<std::string, node_id> ids_;  // of those that are up
  std::unordered_map<node_id, std::string> names_;
  mutable std::unordered_map<node_id, peer_status> traffic_;
  std::unordered_set<node_id> down_;
  std::deque<node_id> last_down_;  // in traffic_
};

}  // namespace troupe::membership
