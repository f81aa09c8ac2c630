// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/gate/introduced_nodes.hpp>

namespace troupe::gate {

bool introduced_nodes::introduce(const certificates::identity& who, node_id id) {
  std::lock_guard lock(mutex_);
  if (const auto known = all_.find(id); known != all_.end() && known->second.node != who.node) return false;
  if (const auto before = ids_.find(who.node); before != ids_.end() && before->second != id) all_.erase(before->second);
  ids_[who.node] = id;
  all_[id] = who;
  return true;
}

std::optional<certificates::identity> introduced_nodes::find(node_id id) const {
  std::lock_guard lock(mutex_);
  const auto found = all_.find(id);
  return found == all_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace troupe::gate
