// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <caf/actor_control_block.hpp>

#include <troupe/messages/messages.hpp>

namespace troupe {

/// Who is up and where: written by the node's `peer` actor as news arrives, read by every thread.
///   PD-1  a node is in it from its peer_up to its peer_down; this node is always in it.
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
  /// Its name, also after it went down; its number if it was never up.
  std::string name(node_id id) const;
  std::vector<member> members() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<node_id, entry> up_;
  std::unordered_map<node_id, std::string> names_;
};

}  // namespace troupe
