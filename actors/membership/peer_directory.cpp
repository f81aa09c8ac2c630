// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/peer_directory.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

#include <caf/actor_cast.hpp>

#include <troupe/messages/packed_tensors.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe::membership {

namespace {

constexpr std::size_t most_away = 64;
constexpr std::size_t most_down = 4096;
constexpr std::size_t most_out_of_reach = 64;
constexpr const char* not_connected = "not connected";

}  // namespace

peer_directory::peer_directory(std::function<std::int64_t()> clock) : clock_(std::move(clock)) {}

void peer_directory::add(const member& who, caf::strong_actor_ptr gateway, std::uint64_t period) {
  std::lock_guard lock(mutex_);
  if (const auto ended = down_.find(who.id); ended != down_.end()) {
    if (period <= ended->second) return;  // news from before the node went down
    down_.erase(ended);
    std::erase(last_down_, who.id);
  } else if (newest_dropped_ != 0 && period <= newest_dropped_) {
    return;  // periods rise with each news: this one is known already, or has ended
  }
  known_.erase(who.id);
  out_of_reach_.erase(who.id);
  ids_[who.name] = who.id;
  up_.insert_or_assign(who.id, entry{who, caf::actor_cast<contracts::gateway_actor>(std::move(gateway))});
  list(who);
  traffic_[who.id].was_connected = true;
}

void peer_directory::list(const member& who) {
  auto& node = traffic_[who.id].seen;
  node.who = who;
  if (std::exchange(node.up, true)) return;
  node.since_ns = clock_();
  node.gone = false;
  node.reason.clear();
  std::erase(last_away_, who.id);
  const std::lock_guard lock(uses_->mutex);
  uses_->all[who.id].is_listed = true;
}

void peer_directory::remove(node_id id, std::uint64_t period, const std::string& reason, bool is_gone) {
  std::lock_guard lock(mutex_);
  known_.erase(id);
  went_away(id, reason, is_gone);
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

/// For a node that went away before: only the reason is new, and whether the node is gone.
void peer_directory::went_away(node_id id, const std::string& reason, bool is_gone) {
  const auto found = traffic_.find(id);
  if (found == traffic_.end()) return;
  auto& node = found->second.seen;
  node.gone = is_gone;
  node.reason = reason;
  if (!std::exchange(node.up, false)) return;
  node.since_ns = clock_();
  {
    const std::lock_guard lock(uses_->mutex);
    if (const auto use = uses_->all.find(id); use != uses_->all.end() && use->second.held == 0)
      uses_->all.erase(use);
    else if (use != uses_->all.end())
      use->second.is_listed = false;
  }
  last_away_.push_back(id);
  if (last_away_.size() <= most_away) return;
  traffic_.erase(last_away_.front());
  last_away_.pop_front();
}

bool peer_directory::know(const member& who) {
  std::lock_guard lock(mutex_);
  if (up_.contains(who.id)) return false;
  list(who);
  return known_.insert_or_assign(who.id, who).second;
}

bool peer_directory::forget(node_id id, const std::string& reason, bool is_gone) {
  std::lock_guard lock(mutex_);
  if (up_.contains(id)) return false;
  went_away(id, reason, is_gone);
  return known_.erase(id) > 0;
}

void peer_directory::note_obstacle(const member& who, const std::string& reason) {
  std::lock_guard lock(mutex_);
  if (reason.empty()) {
    out_of_reach_.erase(who.id);
    return;
  }
  if (out_of_reach_.size() == most_out_of_reach) return;
  auto& seen = out_of_reach_[who.id];
  seen.who = who;
  seen.since_ns = clock_();
  seen.transport = not_reached;
  seen.reason = reason;
}

bool peer_directory::is_member(node_id id) const {
  std::lock_guard lock(mutex_);
  return up_.contains(id) || known_.contains(id);
}

void peer_directory::clear() {
  std::lock_guard lock(mutex_);
  for (auto& [id, node] : traffic_) node.seen.up = false;
  out_of_reach_.clear();
  known_.clear();
  up_.clear();
  ids_.clear();
}

contracts::gateway_actor peer_directory::gateway(node_id id) const {
  std::lock_guard lock(mutex_);
  auto found = up_.find(id);
  return found == up_.end() ? contracts::gateway_actor{} : found->second.gateway;
}

contracts::gateway_actor peer_directory::gateway(const std::string& name) const {
  std::lock_guard lock(mutex_);
  auto found = ids_.find(name);
  return found == ids_.end() ? contracts::gateway_actor{} : up_.at(found->second).gateway;
}

std::uint32_t peer_directory::formats(node_id id) const {
  std::lock_guard lock(mutex_);
  const auto found = up_.find(id);
  return found == up_.end() ? 0 : found->second.who.formats;
}

std::optional<node_id> peer_directory::find(const std::string& name) const {
  std::lock_guard lock(mutex_);
  auto found = ids_.find(name);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::string peer_directory::host(node_id id) const {
  std::lock_guard lock(mutex_);
  auto found = up_.find(id);
  return found == up_.end() ? std::string{} : found->second.who.host;
}

std::vector<c10::Device> peer_directory::devices(node_id id) const {
  std::lock_guard lock(mutex_);
  const auto found = up_.find(id);
  return found == up_.end() ? std::vector<c10::Device>{} : found->second.who.devices;
}

bool peer_directory::is_down(node_id id) const {
  std::lock_guard lock(mutex_);
  return down_.contains(id);
}

std::string peer_directory::name(node_id id) const {
  std::lock_guard lock(mutex_);
  auto found = traffic_.find(id);
  return found == traffic_.end() ? to_string(id) : found->second.seen.who.name;
}

std::vector<member> peer_directory::members() const {
  std::lock_guard lock(mutex_);
  std::vector<member> result;
  result.reserve(up_.size());
  for (const auto& [id, each] : up_) result.push_back(each.who);
  for (const auto& [id, who] : known_) result.push_back(who);
  return result;
}

std::shared_ptr<void> peer_directory::hold(node_id id) const {
  std::lock_guard lock(uses_->mutex);
  ++uses_->all[id].held;
  return {nullptr, [uses = uses_, clock = clock_, id](void*) {
            std::lock_guard inner(uses->mutex);
            const auto ended = uses->all.find(id);
            ended->second.last_ns = clock();
            if (--ended->second.held == 0 && !ended->second.is_listed) uses->all.erase(ended);
          }};
}

bool peer_directory::is_used(node_id id, const std::function<bool()>& keeps) const {
  const auto now_ns = clock_();
  const auto is_recent = [now_ns](std::int64_t when_ns) { return now_ns - when_ns < rest_after_ns; };
  {
    std::lock_guard lock(uses_->mutex);
    if (const auto found = uses_->all.find(id); found != uses_->all.end()) {
      const auto& each = found->second;
      if (each.held > 0 || is_recent(each.last_ns)) return true;
      if (is_recent(each.asked_ns)) return false;
    }
  }
  const bool is_kept = keeps();
  std::lock_guard lock(uses_->mutex);
  const auto found = uses_->all.find(id);
  if (found == uses_->all.end()) return is_kept;  // news that the peer is up are on their way
  auto& each = found->second;
  (is_kept ? each.last_ns : each.asked_ns) = now_ns;
  return each.held > 0 || is_recent(each.last_ns);
}

void peer_directory::touch(node_id id) const {
  std::lock_guard lock(uses_->mutex);
  if (const auto found = uses_->all.find(id); found != uses_->all.end()) found->second.last_ns = clock_();
}

void peer_directory::sent(node_id to, const std::vector<at::Tensor>& tensors, const std::vector<packing>& packings) const {
  const auto bytes = payload_bytes(tensors);
  const auto plain = packings.empty() ? bytes : plain_bytes(tensors, packings);
  touch(to);
  std::lock_guard lock(mutex_);
  auto found = traffic_.find(to);
  if (found == traffic_.end()) return;
  ++found->second.seen.messages_sent;
  found->second.seen.bytes_sent += bytes;
  found->second.seen.plain_bytes_sent += plain;
}

void peer_directory::received(node_id from, const std::vector<at::Tensor>& tensors,
                              const std::vector<packing>& packings) const {
  const auto bytes = payload_bytes(tensors);
  const auto plain = packings.empty() ? bytes : plain_bytes(tensors, packings);
  touch(from);
  std::lock_guard lock(mutex_);
  auto found = traffic_.find(from);
  if (found == traffic_.end()) return;
  ++found->second.seen.messages_received;
  found->second.seen.bytes_received += bytes;
  found->second.seen.plain_bytes_received += plain;
}

void peer_directory::received(const std::string& from, const std::vector<at::Tensor>& tensors,
                              const std::vector<packing>& packings) const {
  node_id id;
  {
    std::lock_guard lock(mutex_);
    if (auto found = ids_.find(from); found != ids_.end()) id = found->second;
  }
  received(id, tensors, packings);
}

void peer_directory::read(node_id from, std::uint64_t bytes) const {
  std::lock_guard lock(mutex_);
  if (auto found = traffic_.find(from); found != traffic_.end()) found->second.seen.bytes_read += bytes;
}

std::size_t peer_directory::others_listed() const {
  std::lock_guard lock(mutex_);
  const auto all = up_.size() + known_.size();
  return all == 0 ? 0 : all - 1;
}

std::vector<peer_status> peer_directory::traffic(node_id self, which nodes) const {
  std::vector<peer_status> result;
  {
    std::lock_guard lock(mutex_);
    const auto now_ns = clock_();
    for (const auto& [id, each] : traffic_) {
      if (id == self || (nodes == which::connected && !each.was_connected) || out_of_reach_.contains(id)) continue;
      auto& node = result.emplace_back(each.seen);
      node.since_ns = now_ns - each.seen.since_ns;
      if (known_.contains(id)) node.transport = not_connected;
    }
    for (const auto& [id, each] : out_of_reach_) result.emplace_back(each).since_ns = now_ns - each.since_ns;
  }
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
    return a.up != b.up ? a.up : std::tie(a.who.name, a.who.id) < std::tie(b.who.name, b.who.id);
  });
  return result;
}

std::size_t peer_directory::entries() const {
  std::scoped_lock lock(mutex_, uses_->mutex);
  return up_.size() + ids_.size() + known_.size() + out_of_reach_.size() + traffic_.size() + last_away_.size() + down_.size() +
         last_down_.size() + uses_->all.size();
}

}  // namespace troupe::membership
