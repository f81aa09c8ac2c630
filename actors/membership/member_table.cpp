// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/member_table.hpp>

#include <algorithm>

#include <troupe/actors/settings.hpp>

namespace troupe::membership {

namespace {

constexpr std::int64_t furthest_ns = 1'000'000'000'000'000'000;  // 31 years: no clock is ahead by more

/// a - b; empty if the difference is larger than clocks differ.
std::optional<std::int64_t> difference(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t result = 0;
  if (__builtin_sub_overflow(a, b, &result) || result > furthest_ns || result < -furthest_ns) return std::nullopt;
  return result;
}

}  // namespace

void clock_estimate::add(std::int64_t sent_ns, std::int64_t answered_ns, std::int64_t received_ns) noexcept {
  allowed_ns_ *= 1.05;
  const auto round_trip = difference(received_ns, sent_ns);
  if (!round_trip || *round_trip < 0 || (known_ && static_cast<double>(*round_trip) > allowed_ns_)) return;
  const auto offset = difference(answered_ns, sent_ns + *round_trip / 2);
  if (!offset) return;
  known_ = true;
  allowed_ns_ = static_cast<double>(*round_trip);
  offset_ns_ = *offset;
}

std::string address_text(const std::string& host, std::uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string describe(const member& who) {
  return "'" + who.name + "' (" + to_string(who.id) + ") at " + address_text(who.host, who.port);
}

std::string member_table::objection(const member& who) const {
  if (who.id.value == 0) return "expected a node with an id, got id 0 from " + describe(who);
  if (who.id == self_.id) return "node '" + self_.name + "' can't join itself; give the address of another node";
  if (!valid_node_name(who.name))
    return "a node's name is 1 to 64 letters, digits, '.', '_' or '-', got one of " + std::to_string(who.name.size()) +
           " characters that is not";
  if (who.name == self_.name) return "the name '" + who.name + "' is taken by node " + describe(self_) + "; choose another one";
  if (const auto* reason = gone(who.id))
    return "node " + describe(who) + " has gone from the view of '" + self_.name + "' (" + *reason + "); start it anew to join";
  return {};
}

const known_peer* member_table::rival(const member& who) const {
  for (const auto& [id, peer] : peers_)
    if (peer.who.name == who.name && id != who.id) return &peer;
  return nullptr;
}

known_peer* member_table::find(node_id id) {
  auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : &found->second;
}

known_peer* member_table::find_name(const std::string& name) {
  for (auto& [id, peer] : peers_)
    if (peer.who.name == name) return &peer;
  return nullptr;
}

known_peer* member_table::find_gateway(const caf::actor_addr& gateway) {
  for (auto& [id, peer] : peers_)
    if (gateway == peer.gateway) return &peer;
  return nullptr;
}

known_peer& member_table::add(const member& who, caf::strong_actor_ptr gateway, std::int64_t now_ns) {
  auto& peer = peers_[who.id];
  peer.who = who;
  peer.gateway = std::move(gateway);
  peer.seen_ns = now_ns;
  return peer;
}

std::optional<known_peer> member_table::remove(node_id id, const std::string& reason) {
  auto found = peers_.find(id);
  if (found == peers_.end()) return std::nullopt;
  auto result = std::move(found->second);
  peers_.erase(found);
  gone_[id] = reason;
  return result;
}

const std::string* member_table::gone(node_id id) const {
  auto found = gone_.find(id);
  return found == gone_.end() ? nullptr : &found->second;
}

std::vector<node_id> member_table::beat() {
  std::vector<node_id> silent;
  for (auto& [id, peer] : peers_) {
    peer.missed = peer.answered ? 0 : peer.missed + 1;
    peer.answered = false;
    if (peer.missed >= allowed_misses) silent.push_back(id);
  }
  return silent;
}

std::vector<member> member_table::members() const {
  std::vector<member> result;
  result.reserve(peers_.size());
  for (const auto& [id, peer] : peers_) result.push_back(peer.who);
  std::sort(result.begin(), result.end(), [](const member& a, const member& b) { return a.name < b.name; });
  return result;
}

std::string member_table::names() const {
  std::string result;
  for (const auto& who : members()) result += (result.empty() ? "" : ", ") + who.name;
  return result.empty() ? "none" : result;
}

}  // namespace troupe::membership
