// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/node_ids.hpp>

namespace troupe::network {

node_ids::hold node_ids::take(const std::string& id, const std::string& name) {
  std::lock_guard lock(mutex_);
  auto& found = all_[id];
  if (found.holds > 0 && found.name != name) return nullptr;
  found.name = name;
  ++found.holds;
  return {&found, [all = shared_from_this(), id](const void*) { all->give_back(id); }};
}

bool node_ids::is_taken(const std::string& id) const {
  std::lock_guard lock(mutex_);
  return all_.contains(id);
}

void node_ids::give_back(const std::string& id) {
  std::lock_guard lock(mutex_);
  if (const auto found = all_.find(id); found != all_.end() && --found->second.holds == 0) all_.erase(found);
}

}  // namespace troupe::network
