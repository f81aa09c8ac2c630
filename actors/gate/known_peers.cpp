// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/gate/known_peers.hpp>

namespace troupe::gate {

own_actors::hold own_actors::add(caf::actor_id actor, kind what) {
  checked_lock lock(mutex_);
  all_[actor] = what;
  return {shared_from_this(), actor};
}

own_actors::hold::~hold() {
  if (!all_) return;
  checked_lock lock(all_->mutex_);
  if (const auto found = all_->all_.find(actor_); found != all_->all_.end() && found->second == kind::inner)
    all_->all_.erase(found);
}

own_actors::hold& own_actors::hold::operator=(hold other) noexcept {
  std::swap(all_, other.all_);
  std::swap(actor_, other.actor_);
  return *this;
}

void own_actors::add_first(caf::actor_id last) {
  checked_lock lock(mutex_);
  last_of_first_ = last;
}

std::optional<own_actors::kind> own_actors::find(caf::actor_id actor) const {
  checked_lock lock(mutex_);
  const auto found = all_.find(actor);
  if (found != all_.end()) return found->second;
  return actor != 0 && actor <= last_of_first_ ? std::optional(kind::inner) : std::nullopt;
}

}  // namespace troupe::gate
