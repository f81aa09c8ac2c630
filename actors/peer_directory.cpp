// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/peer_directory.hpp>

#include <utility>

namespace troupe {

void peer_directory::add(const member& who, caf::strong_actor_ptr face) {
  std::lock_guard lock(mutex_);
  names_[who.id] = who.name;
  up_[who.id] = entry{who, std::move(face)};
}

void peer_directory::remove(node_id id) {
  std::lock_guard lock(mutex_);
  up_.erase(id);
}

void peer_directory::clear() {
  std::lock_guard lock(mutex_);
  up_.clear();
}

caf::strong_actor_ptr peer_directory::face(node_id id) const {
  std::lock_guard lock(mutex_);
  auto found = up_.find(id);
  return found == up_.end() ? nullptr : found->second.face;
}

caf::strong_actor_ptr peer_directory::face(const std::string& name) const {
  std::lock_guard lock(mutex_);
  for (const auto& [id, known] : up_)
    if (known.who.name == name) return known.face;
  return nullptr;
}

std::string peer_directory::name(node_id id) const {
  std::lock_guard lock(mutex_);
  auto found = names_.find(id);
  return found == names_.end() ? to_string(id) : found->second;
}

std::vector<member> peer_directory::members() const {
  std::lock_guard lock(mutex_);
  std::vector<member> result;
  result.reserve(up_.size());
  for (const auto& [id, each] : up_) result.push_back(each.who);
  return result;
}

}  // namespace troupe
