// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/peer_directory.hpp>

#include <algorithm>
#include <utility>

#include <caf/actor_cast.hpp>

namespace troupe::membership {

namespace {

constexpr std::size_t most_down = 4096;

}  // namespace

void peer_directory::add(const member& who, caf::strong_actor_ptr gateway, std::uint64_t period) {
  checked_lock lock(mutex_);
  if (const auto ended = down_.find(who.id); ended != down_.end()) {
    if (period <= ended->second) return;  // news from before the node went down
    down_.erase(ended);
    std::erase(last_down_, who.id);
  } else if (newest_dropped_ != 0 && period <= newest_dropped_) {
    return;  // periods rise with each news: this period is known already, or has ended
  }
  known_.erase(who.id);
  ids_[who.name] = who.id;
  up_.insert_or_assign(who.id, entry{who, caf::actor_cast<contracts::gateway_actor>(std::move(gateway))});
  traffic.list(who, true);
}

void peer_directory::remove(node_id id, std::uint64_t period, const std::string& reason, bool is_gone) {
  checked_lock lock(mutex_);
  known_.erase(id);
  traffic.went_away(id, reason, is_gone);
  auto found = up_.find(id);
  if (found == up_.end()) return;
  if (auto named = ids_.find(found->second.who.name); named != ids_.end() && named->second == id) ids_.erase(named);
  up_.erase(found);
  note_end(id, period);
}

void peer_directory::note_end(node_id id, std::uint64_t period) {
  down_[id] = period;
  last_down_.push_back(id);
  if (last_down_.size() <= most_down) return;
  const auto oldest = down_.extract(last_down_.front());
  newest_dropped_ = std::max(newest_dropped_, oldest.mapped());
  last_down_.pop_front();
}

bool peer_directory::know(const member& who) {
  checked_lock lock(mutex_);
  if (up_.contains(who.id)) return false;
  traffic.list(who, false);
  return known_.insert_or_assign(who.id, who).second;
}

bool peer_directory::forget(node_id id, const std::string& reason, bool is_gone) {
  checked_lock lock(mutex_);
  if (up_.contains(id)) return false;
  traffic.went_away(id, reason, is_gone);
  return known_.erase(id) > 0;
}

bool peer_directory::is_member(node_id id) const {
  checked_lock lock(mutex_);
  return up_.contains(id) || known_.contains(id);
}

void peer_directory::clear() {
  checked_lock lock(mutex_);
  traffic.clear();
  known_.clear();
  up_.clear();
  ids_.clear();
}

contracts::gateway_actor peer_directory::gateway(const std::string& name) const {
  checked_lock lock(mutex_);
  auto found = ids_.find(name);
  return found == ids_.end() ? contracts::gateway_actor{} : up_.at(found->second).gateway;
}

std::optional<node_id> peer_directory::find(const std::string& name) const {
  checked_lock lock(mutex_);
  auto found = ids_.find(name);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

bool peer_directory::is_down(node_id id) const {
  checked_lock lock(mutex_);
  return down_.contains(id);
}

std::vector<member> peer_directory::members() const {
  checked_lock lock(mutex_);
  std::vector<member> result;
  result.reserve(up_.size());
  for (const auto& [id, each] : up_) result.push_back(each.who);
  for (const auto& [id, who] : known_) result.push_back(who);
  return result;
}

std::size_t peer_directory::others_listed() const {
  checked_lock lock(mutex_);
  const auto all = up_.size() + known_.size();
  return all == 0 ? 0 : all - 1;
}

std::size_t peer_directory::entries() const {
  checked_lock lock(mutex_);
  return up_.size() + ids_.size() + known_.size() + down_.size() + last_down_.size() + traffic.entries();
}

}  // namespace troupe::membership
