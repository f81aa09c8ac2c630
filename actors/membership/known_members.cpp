// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/known_members.hpp>

#include <algorithm>
#include <optional>

#include <troupe/actors/settings.hpp>

namespace troupe::membership {

namespace {

constexpr std::int64_t furthest_ns = 1'000'000'000'000'000'000;  // 31 years: no clock is ahead by more

/// a - b; empty if the difference is larger than any difference between clocks.
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

std::string milliseconds_text(std::int64_t ns) { return std::to_string(ns / 1'000'000) + " ms"; }

std::string known_members::objection(const member& who, const member& own) const {
  if (who.id.value == 0) return "expected a node with an id, got id 0 from " + describe(who);
  if (who.id == self_.id) return "node '" + self_.name + "' can't join itself; give the address of another node";
  if (!valid_node_name(who.name))
    return "a node's name is 1 to 64 letters, digits, '.', '_' or '-', got one of " + std::to_string(who.name.size()) +
           " characters that is not";
  if (who.name == self_.name) return "the name '" + who.name + "' is taken by node " + describe(own) + other_name;
  return {};
}

const known_peer* known_members::rival(const member& who) const {
  for (const auto& [id, peer] : peers_)
    if (peer.who.name == who.name && id != who.id) return &peer;
  return nullptr;
}

const known_peer* known_members::living_rival(const member& who) const {
  const auto* other = rival(who);
  if (other == nullptr || other->is_up || other->who.host != who.host || other->who.port != who.port) return other;
  return nullptr;
}

known_peer* known_members::find(node_id id) {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : &found->second;
}

const known_peer* known_members::find(node_id id) const { return const_cast<known_members*>(this)->find(id); }

known_peer* known_members::find_gateway(const caf::actor_addr& gateway) {
  for (auto& [id, peer] : peers_)
    if (gateway == peer.gateway) return &peer;
  return nullptr;
}

const known_peer* known_members::find_up(const std::string& name) const {
  for (const auto& [id, peer] : peers_)
    if (peer.is_up && peer.who.name == name) return &peer;
  return nullptr;
}

const known_peer* known_members::find_up(node_id id) const {
  const auto* peer = find(id);
  return peer != nullptr && peer->is_up ? peer : nullptr;
}

bond known_members::between(node_id id) const {
  if (const auto* peer = find(id)) return peer->between;
  const auto found = gone_.find(id);
  return found == gone_.end() ? bond{} : found->second.between;
}

const member* known_members::holder(const member& who) const {
  const auto* found = roster_.find(who.name);
  return found == nullptr || found->id == who.id || find(found->id) != nullptr ? nullptr : found;
}

bool known_members::has_left_or_is_awaited(node_id id) const {
  const auto found = gone_.find(id);
  return found != gone_.end() && found->second.is != absent::state::given_up;
}

const std::string* known_members::gone(node_id id) const {
  const auto found = gone_.find(id);
  return found == gone_.end() ? nullptr : &found->second.reason;
}

std::vector<member_news> known_members::news_for(node_id who, std::uint64_t digest) const {
  return digest == roster_.digest(self_.id, who) ? std::vector<member_news>{} : roster_.all();
}

std::string known_members::obstacle_to(const std::string& name, node_id id) const {
  const auto* who = name.empty() ? roster_.find(id) : roster_.find(name);
  const auto found = who == nullptr ? strangers_.end() : strangers_.find(who->id);
  return found == strangers_.end() || found->second.why.empty()
           ? std::string()
           : "this node can't connect to node " + describe(*who) + ": " + found->second.why;
}

bool known_members::is_up(node_id id) const {
  if (const auto* peer = find(id)) return peer->is_up;
  const auto tried = strangers_.find(id);
  const bool is_out_of_reach = tried != strangers_.end() && tried->second.is_out_of_reach;
  return !is_out_of_reach && !has_left_or_is_awaited(id) && roster_.is_up(id);
}

std::vector<member> known_members::members() const {
  auto result = roster_.members();
  std::erase_if(result, [&](const member& who) { return find(who.id) != nullptr || !is_up(who.id); });
  for (const auto& [id, peer] : peers_)
    if (peer.is_up) result.push_back(peer.who);
  std::sort(result.begin(), result.end(), [](const member& a, const member& b) { return a.name < b.name; });
  return result;
}

std::string known_members::names() const {
  constexpr std::size_t most_named = 10;
  std::string result;
  const auto all = members();
  for (std::size_t i = 0; i < std::min(all.size(), most_named); ++i) result += (i == 0 ? "" : ", ") + all[i].name;
  if (all.size() > most_named) result += " and " + std::to_string(all.size() - most_named) + " more";
  return result.empty() ? "none" : result;
}

}  // namespace troupe::membership
