// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/node_ids.hpp>

namespace troupe::network {

node_ids::hold node_ids::take(const std::string& id, const certificates::identity& who) {
  std::lock_guard lock(mutex_);
  auto& found = all_[id];
  if (found.holds > 0 && found.who.node != who.node) return nullptr;
  found.who = who;
  ++found.holds;
  return {&found.questions, [all = shared_from_this(), id](const void*) { all->give_back(id); }};
}

std::optional<certificates::identity> node_ids::find(const std::string& id) const {
  std::lock_guard lock(mutex_);
  const auto found = all_.find(id);
  return found == all_.end() ? std::nullopt : std::optional(found->second.who);
}

void node_ids::give_back(const std::string& id) {
  std::lock_guard lock(mutex_);
  if (const auto found = all_.find(id); found != all_.end() && --found->second.holds == 0) all_.erase(found);
}

}  // namespace troupe::network
