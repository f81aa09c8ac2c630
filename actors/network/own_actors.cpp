// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/own_actors.hpp>

namespace troupe::network {

own_actors::hold own_actors::add(caf::actor_id actor, kind what) {
  std::lock_guard lock(mutex_);
  all_[actor] = what;
  return {this, [all = shared_from_this(), actor](const void*) {
            std::lock_guard again(all->mutex_);
            all->all_.erase(actor);
          }};
}

std::optional<own_actors::kind> own_actors::find(caf::actor_id actor) const {
  std::lock_guard lock(mutex_);
  const auto found = all_.find(actor);
  return found == all_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace troupe::network
