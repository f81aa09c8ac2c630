// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/own_offers.hpp>

#include <utility>

namespace troupe::devices {

own_offers& own_offers::all() {
  static auto* const only = new own_offers;  // never destroyed: nodes may end later
  return *only;
}

own_offers::kept own_offers::add(offered what) {
  const checked_lock lock(mutex_);
  const auto handle = std::to_string(++last_);
  offered_.emplace(handle, std::move(what));
  return {new std::string(handle), [this](const std::string* ended) {
            offered freed;  // without the lock
            {
              const checked_lock inside(mutex_);
              if (const auto found = offered_.extract(*ended)) freed = std::move(found.mapped());
            }
            delete ended;
          }};
}

std::optional<own_offers::offered> own_offers::find(const std::string& handle) {
  const checked_lock lock(mutex_);
  const auto found = offered_.find(handle);
  return found != offered_.end() ? std::optional(found->second) : std::nullopt;
}

}  // namespace troupe::devices
