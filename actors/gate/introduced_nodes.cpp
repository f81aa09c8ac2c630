// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/gate/introduced_nodes.hpp>

namespace troupe::gate {

bool introduced_nodes::introduce(const certificates::identity& who, node_id id) {
  std::optional<node_id> before;
  {
    std::lock_guard lock(mutex_);
    if (const auto known = all_.find(id); known != all_.end() && known->second.node != who.node) return false;
    if (const auto found = ids_.find(who.node); found != ids_.end() && found->second != id) before = found->second;
    if (before) all_.erase(*before);
    ids_[who.node] = id;
    all_[id] = who;
  }
  if (before && give_up_) give_up_(*before);
  return true;
}

std::optional<certificates::identity> introduced_nodes::find(node_id id) const {
  std::lock_guard lock(mutex_);
  const auto found = all_.find(id);
  return found == all_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<node_id> introduced_nodes::find(const std::string& name) const {
  std::lock_guard lock(mutex_);
  const auto found = ids_.find(name);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace troupe::gate
