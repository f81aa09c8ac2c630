// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/member_table.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <troupe/actors/settings.hpp>

namespace troupe::membership {

namespace {

constexpr std::int64_t furthest_ns = 1'000'000'000'000'000'000;  // 31 years: no clock is ahead by more
// Pauses between two dials of a node that does not answer, and how long a node that is gone is dialled.
constexpr std::int64_t shortest_pause_ns = 1'000'000'000;
constexpr std::int64_t longest_pause_ns = 30'000'000'000;
constexpr std::int64_t longest_wait_ns = 3'600'000'000'000;

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

std::string milliseconds_text(std::int64_t ns) { return std::to_string(ns / 1'000'000) + " ms"; }

std::string member_table::objection(const member& who) const {
  if (who.id.value == 0) return "expected a node with an id, got id 0 from " + describe(who);
  if (who.id == self_.id) return "node '" + self_.name + "' can't join itself; give the address of another node";
  if (!valid_node_name(who.name))
    return "a node's name is 1 to 64 letters, digits, '.', '_' or '-', got one of " + std::to_string(who.name.size()) +
           " characters that is not";
  if (who.name == self_.name) return "the name '" + who.name + "' is taken by node " + describe(self_) + "; choose another one";
  return {};
}

const known_peer* member_table::rival(const member& who) const {
  for (const auto& [id, peer] : peers_)
    if (peer.who.name == who.name && id != who.id) return &peer;
  return nullptr;
}

known_peer* member_table::find(node_id id) {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : &found->second;
}

const known_peer* member_table::find(node_id id) const { return const_cast<member_table*>(this)->find(id); }

known_peer* member_table::find_gateway(const caf::actor_addr& gateway) {
  for (auto& [id, peer] : peers_)
    if (gateway == peer.gateway) return &peer;
  return nullptr;
}

const known_peer* member_table::find_up(const std::string& name) const {
  for (const auto& [id, peer] : peers_)
    if (peer.is_up && peer.who.name == name) return &peer;
  return nullptr;
}

const known_peer* member_table::find_up(node_id id) const {
  const auto* peer = find(id);
  return peer != nullptr && peer->is_up ? peer : nullptr;
}

bond member_table::between(node_id id) const {
  if (const auto* peer = find(id)) return peer->between;
  const auto found = gone_.find(id);
  return found == gone_.end() ? bond{} : found->second.between;
}

bool member_table::should_meet(node_id id) const {
  if (id == self_.id || find(id) != nullptr) return false;
  const auto found = gone_.find(id);
  return found == gone_.end() || !(found->second.has_left || found->second.is_awaited);
}

const std::string* member_table::gone(node_id id) const {
  const auto found = gone_.find(id);
  return found == gone_.end() ? nullptr : &found->second.reason;
}

member_steps member_table::met(const member& who, caf::strong_actor_ptr gateway, const bond& theirs, way how,
                               std::int64_t now_ns) {
  member_steps steps;
  take_over(who.id, theirs, now_ns, steps);
  const auto mine = between(who.id);
  auto* peer = find(who.id);
  if (peer != nullptr) {
    peer->who.host = who.host;
    peer->who.port = who.port;
    const bool is_new = gateway != std::exchange(peer->gateway, gateway);
    peer->is_connected = true;
    if (mine == theirs && (peer->is_up ? is_new : how == way::answers)) revive(*peer, now_ns, steps);
    if (!peer->is_up) steps.beats.push_back(who.id);
    return steps;
  }
  if (mine != theirs) return steps;  // the other node has to take over this node's bond first
  gone_.erase(who.id);
  auto& added = peers_[who.id];
  added.who = who;
  added.gateway = std::move(gateway);
  added.between = mine;
  added.seen_ns = now_ns;
  added.period = ++last_period_;
  steps.changes.push_back({peer_change::kind::up, who, added.gateway, {}, added.period});
  steps.beats.push_back(who.id);
  return steps;
}

member_steps member_table::heard(node_id from, const bond& theirs, std::int64_t now_ns) {
  member_steps steps;
  take_over(from, theirs, now_ns, steps);
  if (const auto* peer = find(from); peer != nullptr && !peer->is_up) steps.beats.push_back(from);
  return steps;
}

member_steps member_table::answered(node_id by, const bond& theirs, std::int64_t now_ns) {
  member_steps steps;
  take_over(by, theirs, now_ns, steps);
  auto* peer = find(by);
  if (peer == nullptr || peer->between != theirs) return steps;  // an answer of the time before the bond changed
  peer->answered = true;
  peer->seen_ns = now_ns;
  if (!peer->is_up) revive(*peer, now_ns, steps);
  return steps;
}

member_steps member_table::beat(std::int64_t now_ns, const std::function<bool(const known_peer&)>& hears) {
  member_steps steps;
  std::vector<node_id> forgotten;
  for (auto& [id, peer] : peers_) {
    peer.missed = peer.answered ? 0 : peer.missed + 1;
    peer.answered = false;
    if (peer.is_up && peer.missed >= allowed_misses) {
      const bool mute = peer.missed >= most_misses;
      const auto silence = milliseconds_text(now_ns - peer.seen_ns);
      // On a slow network answers may wait behind many other bytes.
      if (mute || !hears(peer))
        lose(peer, (mute ? "no answer to a heartbeat for " : "no sign of life for ") + silence, now_ns, steps);
    }
    const auto away = now_ns - peer.lost_ns;
    if (!peer.is_up && away >= limits_.forget_after.count()) {
      forgotten.push_back(id);
      continue;
    }
    if (!peer.is_up && peer.is_connected && away >= intervals_to_cut * limits_.heartbeat.count()) {
      peer.is_connected = false;
      steps.cuts.push_back(peer.gateway);
    }
    if (peer.is_connected) steps.beats.push_back(id);
    if (!peer.is_connected && !peer.is_dialled && now_ns >= peer.dial_ns) {
      peer.is_dialled = true;
      steps.dials.push_back(peer.who);
    }
  }
  for (const auto id : forgotten)
    forget(id, "unreachable for " + milliseconds_text(now_ns - find(id)->lost_ns), end::awaited, now_ns, steps);
  if (++beats_ % intervals_to_greet == 0) greet_next(steps);
  for (auto& [id, node] : gone_) {
    if (now_ns - node.since_ns >= longest_wait_ns) node.is_awaited = false;
    if (!node.is_awaited || node.is_dialled || now_ns < node.dial_ns) continue;
    node.is_dialled = true;
    steps.dials.push_back(node.who);
  }
  return steps;
}

/// The greeting and its answer name all members that the two nodes know. So nodes that could not meet at first meet later.
void member_table::greet_next(member_steps& to) {
  node_id next;
  for (const auto id : {last_greeted_, node_id{}}) {
    for (const auto& [other, peer] : peers_)
      if (peer.is_up && other > id && (next == node_id{} || other < next)) next = other;
    if (next != node_id{}) break;
  }
  if (next != node_id{}) to.greets.push_back(next);
  last_greeted_ = next;
}

member_steps member_table::suspect(node_id who, std::int64_t now_ns) {
  member_steps steps;
  if (auto* peer = find(who); peer != nullptr && peer->is_up)
    lose(*peer, "did not answer when another node claimed its name", now_ns, steps);
  return steps;
}

/// The node with the lower id dials at once. If both nodes dialled at once, CAF might drop both connections.
member_steps member_table::connection_lost(node_id of, std::int64_t now_ns) {
  member_steps steps;
  auto* peer = find(of);
  if (peer == nullptr || !peer->is_connected) return steps;
  peer->is_connected = false;
  if (peer->is_up) lose(*peer, "connection lost", now_ns, steps);
  peer->dial_ns = now_ns + (self_.id < of ? 0 : limits_.heartbeat.count());
  if (peer->is_dialled || now_ns < peer->dial_ns) return steps;
  peer->is_dialled = true;
  steps.dials.push_back(peer->who);
  return steps;
}

member_steps member_table::dialled(node_id who, dial_end how, std::int64_t now_ns) {
  member_steps steps;
  if (auto* peer = find(who)) {
    peer->is_dialled = false;
    if (peer->is_up || how == dial_end::reached) return steps;
    if (how == dial_end::another_listens)
      forget(who, "another program listens at its address", end::replaced, now_ns, steps);
    else if (how == dial_end::nobody_listens)
      forget(who, "its process has ended: no program listens at its address", end::awaited, now_ns, steps);
    else
      peer->dial_ns = now_ns + limits_.heartbeat.count();
    return steps;
  }
  const auto found = gone_.find(who);
  if (found == gone_.end()) return steps;
  auto& node = found->second;
  node.is_dialled = false;
  if (how == dial_end::another_listens) node.is_awaited = false;
  if (how == dial_end::reached) return steps;
  node.pause_ns = std::clamp(2 * node.pause_ns, shortest_pause_ns, longest_pause_ns);
  node.dial_ns = now_ns + node.pause_ns;
  return steps;
}

member_steps member_table::left(node_id who, const std::string& reason, std::int64_t now_ns) {
  member_steps steps;
  forget(who, reason, end::left, now_ns, steps);
  return steps;
}

/// Takes the steps that the other node has taken already.
void member_table::take_over(node_id from, const bond& theirs, std::int64_t now_ns, member_steps& to) {
  if (theirs <= between(from)) return;
  auto* peer = find(from);
  if (peer == nullptr) {
    if (const auto found = gone_.find(from); found != gone_.end())
      found->second.between = theirs;
    else
      gone_[from] = {{}, theirs, "it held this node for gone", false, false, false, now_ns};
    return drop_oldest();
  }
  if (theirs.partings > peer->between.partings)
    forget(from, "it held this node for gone", end::awaited, now_ns, to);
  else if (peer->is_up)
    lose(*peer, "it held this node for unreachable", now_ns, to);
  if (peer = find(from); peer != nullptr)
    peer->between = theirs;
  else
    gone_[from].between = theirs;
}

void member_table::lose(known_peer& peer, const std::string& reason, std::int64_t now_ns, member_steps& to) {
  peer.is_up = false;
  peer.lost_ns = now_ns;
  peer.dial_ns = now_ns;
  ++peer.between.separations;
  to.changes.push_back({peer_change::kind::unreachable, peer.who, peer.gateway, reason, peer.period});
}

void member_table::revive(known_peer& peer, std::int64_t now_ns, member_steps& to) {
  const auto away = peer.is_up ? 0 : now_ns - peer.lost_ns;
  peer.is_up = true;
  peer.period = ++last_period_;
  peer.answered = true;
  peer.missed = 0;
  peer.seen_ns = now_ns;
  to.changes.push_back({peer_change::kind::up_again, peer.who, peer.gateway, {}, peer.period, away});
}

void member_table::forget(node_id who, const std::string& reason, end how, std::int64_t now_ns, member_steps& to) {
  auto peer = peers_.extract(who);
  if (!peer) return;
  const auto& lost = peer.mapped();
  to.changes.push_back({peer_change::kind::gone, lost.who, lost.gateway, reason, lost.period});
  const bond ended{lost.between.partings + 1, 0};
  auto& node = gone_[who];
  node = {lost.who, ended, reason, how == end::awaited, how == end::left, lost.is_dialled, now_ns};
  node.pause_ns = shortest_pause_ns;
  node.dial_ns = now_ns + shortest_pause_ns;
  drop_oldest();
}

void member_table::drop_oldest() {
  if (gone_.size() <= most_gone) return;
  gone_.erase(std::min_element(gone_.begin(), gone_.end(),
                               [](const auto& a, const auto& b) { return a.second.since_ns < b.second.since_ns; }));
}

std::vector<member> member_table::members() const {
  std::vector<member> result;
  result.reserve(peers_.size());
  for (const auto& [id, peer] : peers_)
    if (peer.is_up) result.push_back(peer.who);
  std::sort(result.begin(), result.end(), [](const member& a, const member& b) { return a.name < b.name; });
  return result;
}

std::string member_table::names() const {
  std::string result;
  for (const auto& who : members()) result += (result.empty() ? "" : ", ") + who.name;
  return result.empty() ? "none" : result;
}

}  // namespace troupe::membership
