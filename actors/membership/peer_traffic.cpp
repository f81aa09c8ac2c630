// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/peer_traffic.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

#include <troupe/messages/packed_tensors.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe::membership {

namespace {

constexpr std::size_t most_away = 64;
constexpr std::size_t most_out_of_reach = 64;
constexpr const char* not_connected = "not connected";

}  // namespace

void peer_traffic::list(const member& who, bool is_peer) {
  const checked_lock lock(mutex_);
  auto& [node, was_connected, over_the_host] = traffic_[who.id];
  was_connected = was_connected || is_peer;
  if (is_peer) out_of_reach_.erase(who.id);
  node.who = who;
  node.transport = is_peer ? "" : not_connected;
  if (std::exchange(node.up, true)) return;
  over_the_host = false;
  node.since_ns = clock_();
  node.gone = false;
  node.reason.clear();
  std::erase(last_away_, who.id);
  const checked_lock inner(uses_->mutex);
  uses_->all[who.id].is_listed = true;
}

void peer_traffic::went_away(node_id id, const std::string& reason, bool is_gone) {
  const checked_lock lock(mutex_);
  const auto found = traffic_.find(id);
  if (found == traffic_.end()) return;
  auto& node = found->second.seen;
  node.gone = is_gone;
  node.reason = reason;
  node.transport.clear();
  if (!std::exchange(node.up, false)) return;
  node.since_ns = clock_();
  {
    const checked_lock inner(uses_->mutex);
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

void peer_traffic::clear() {
  const checked_lock lock(mutex_);
  for (auto& [id, node] : traffic_) {
    node.seen.up = false;
    node.seen.transport.clear();
  }
  out_of_reach_.clear();
}

bool peer_traffic::note_over_the_host(node_id id) const {
  const checked_lock lock(mutex_);
  const auto found = traffic_.find(id);
  return found != traffic_.end() && !std::exchange(found->second.over_the_host, true);
}

bool peer_traffic::is_over_the_host(node_id id) const {
  const checked_lock lock(mutex_);
  const auto found = traffic_.find(id);
  return found != traffic_.end() && found->second.over_the_host;
}

void peer_traffic::note_obstacle(const member& who, const std::string& reason) {
  checked_lock lock(mutex_);
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

std::shared_ptr<void> peer_traffic::hold(node_id id) const {
  checked_lock lock(uses_->mutex);
  ++uses_->all[id].held;
  return {nullptr, [uses = uses_, clock = clock_, id](void*) {
            checked_lock inner(uses->mutex);
            const auto ended = uses->all.find(id);
            ended->second.last_ns = clock();
            if (--ended->second.held == 0 && !ended->second.is_listed) uses->all.erase(ended);
          }};
}

bool peer_traffic::is_used(node_id id, const std::function<bool()>& keeps) const {
  const auto now_ns = clock_();
  const auto is_recent = [now_ns](std::int64_t when_ns) { return now_ns - when_ns < rest_after_ns; };
  {
    checked_lock lock(uses_->mutex);
    if (const auto found = uses_->all.find(id); found != uses_->all.end()) {
      const auto& each = found->second;
      if (each.held > 0 || is_recent(each.last_ns)) return true;
      if (is_recent(each.asked_ns)) return false;
    }
  }
  const bool is_kept = keeps();
  checked_lock lock(uses_->mutex);
  const auto found = uses_->all.find(id);
  if (found == uses_->all.end()) return is_kept;  // news that the peer is up are on their way
  auto& each = found->second;
  (is_kept ? each.last_ns : each.asked_ns) = now_ns;
  return each.held > 0 || is_recent(each.last_ns);
}

void peer_traffic::touch(node_id id) const {
  checked_lock lock(uses_->mutex);
  if (const auto found = uses_->all.find(id); found != uses_->all.end()) found->second.last_ns = clock_();
}

void peer_traffic::count(bool leaves, node_id with, const std::vector<at::Tensor>& tensors,
                         const std::vector<packing>& packings) const {
  const auto bytes = payload_bytes(tensors);
  const auto plain = packings.empty() ? bytes : plain_bytes(tensors, packings);
  touch(with);
  checked_lock lock(mutex_);
  const auto found = traffic_.find(with);
  if (found == traffic_.end()) return;
  auto& seen = found->second.seen;
  ++(leaves ? seen.messages_sent : seen.messages_received);
  (leaves ? seen.bytes_sent : seen.bytes_received) += bytes;
  (leaves ? seen.plain_bytes_sent : seen.plain_bytes_received) += plain;
}

void peer_traffic::read(node_id from, std::uint64_t bytes) const {
  checked_lock lock(mutex_);
  if (auto found = traffic_.find(from); found != traffic_.end()) found->second.seen.bytes_read += bytes;
}

std::string peer_traffic::name(node_id id) const {
  checked_lock lock(mutex_);
  auto found = traffic_.find(id);
  return found == traffic_.end() ? to_string(id) : found->second.seen.who.name;
}

std::vector<peer_status> peer_traffic::report(node_id self, which nodes) const {
  std::vector<peer_status> result;
  {
    checked_lock lock(mutex_);
    const auto now_ns = clock_();
    for (const auto& [id, each] : traffic_) {
      if (id == self || (nodes == which::connected && !each.was_connected) || out_of_reach_.contains(id)) continue;
      result.emplace_back(each.seen).since_ns = now_ns - each.seen.since_ns;
    }
    for (const auto& [id, each] : out_of_reach_) result.emplace_back(each).since_ns = now_ns - each.since_ns;
  }
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
    return a.up != b.up ? a.up : std::tie(a.who.name, a.who.id) < std::tie(b.who.name, b.who.id);
  });
  return result;
}

std::size_t peer_traffic::entries() const {
  const checked_lock lock(mutex_);
  const checked_lock inner(uses_->mutex);
  return out_of_reach_.size() + traffic_.size() + last_away_.size() + uses_->all.size();
}

}  // namespace troupe::membership
