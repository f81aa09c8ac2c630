// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/gate/introduced_nodes.hpp>

namespace troupe::gate {

bool introduced_nodes::introduce(const certificates::identity& who, node_id id) {
  std::optional<node_id> before;
  {
    checked_lock lock(mutex_);
    if (const auto known = all_.find(id); known != all_.end() && known->second.node != who.node) return false;
    auto& own = ids_[who.node];
    all_[id] = who;
    if (own.accepted == id || own.claimed == id) return true;
    before = std::exchange(own.claimed, id);
    if (before) all_.erase(*before);
  }
  if (before && give_up_) give_up_(*before);
  return true;
}

bool introduced_nodes::accept(node_id id) {
  std::optional<node_id> before;
  {
    checked_lock lock(mutex_);
    const auto known = all_.find(id);
    if (known == all_.end()) return false;
    auto& own = ids_[known->second.node];
    if (own.accepted == id) return true;
    own.claimed.reset();
    before = std::exchange(own.accepted, id);
    if (before) all_.erase(*before);
  }
  if (before && give_up_) give_up_(*before);
  return true;
}

std::optional<certificates::identity> introduced_nodes::find(node_id id) const {
  checked_lock lock(mutex_);
  const auto found = all_.find(id);
  return found == all_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<node_id> introduced_nodes::find(const std::string& name) const {
  checked_lock lock(mutex_);
  const auto found = ids_.find(name);
  if (found == ids_.end()) return std::nullopt;
  return found->second.accepted ? found->second.accepted : found->second.claimed;
}

}  // namespace troupe::gate
