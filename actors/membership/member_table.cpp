// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/member_table.hpp>

#include <algorithm>
#include <utility>

#include <troupe/messages/expect.hpp>

namespace troupe::membership {

namespace {

// Pauses between two dials of a node that does not answer, and how long a node that is gone is dialled.
constexpr std::int64_t shortest_pause_ns = 1'000'000'000;
constexpr std::int64_t longest_pause_ns = 30'000'000'000;
constexpr std::int64_t longest_wait_ns = 3'600'000'000'000;

}  // namespace

member_table::member_table(member self, times limits)
    : member_table(roster(std::move(self), {intervals_of_patience * limits.heartbeat, limits.forget_after, limits.forget_after,
                                            limits.most_in_mesh, limits.rings}),
                   limits) {}

member_table::member_table(roster known, times limits) : known_members(std::move(known)), limits_(limits) {}

void member_table::set_port(std::uint16_t port) {
  self_.port = port;
  roster_.set_port(port);
}

member_steps member_table::met(const member& who, caf::strong_actor_ptr gateway, const bond& theirs, way how,
                               std::int64_t now_ns, std::uint32_t incarnation) {
  member_steps steps;
  take_over(who.id, theirs, now_ns, steps);
  if (auto news = roster_.met(who, incarnation, now_ns); !news.empty()) steps.tells.emplace_back(who.id, std::move(news));
  forget_stranger(who, steps);
  meet(who, std::move(gateway), theirs, how, now_ns, steps);
  if (auto* peer = find(who.id)) peer->last_news = roster_.last_news();
  note_news(now_ns, steps);
  return steps;
}

void member_table::meet(const member& who, caf::strong_actor_ptr gateway, const bond& theirs, way how, std::int64_t now_ns,
                        member_steps& to) {
  const auto mine = between(who.id);
  auto* peer = find(who.id);
  if (peer != nullptr) {
    peer->who.host = who.host;
    peer->who.port = who.port;
    peer->who.formats = who.formats;
    const bool is_new = gateway != std::exchange(peer->gateway, gateway);
    peer->is_connected = true;
    if (mine == theirs && (peer->is_up ? is_new : how == way::answers)) revive(*peer, now_ns, to);
    if (!peer->is_up) to.beats.push_back(who.id);
    return;
  }
  if (mine != theirs) return;  // the other node has to take over this node's bond first
  TROUPE_EXPECT(objection(who, self()).empty() && living_rival(who) == nullptr);
  gone_.erase(who.id);
  auto& added = peers_[who.id];
  added.who = who;
  added.gateway = std::move(gateway);
  added.between = mine;
  added.signs.seen_ns = now_ns;
  added.period = ++last_period_;
  to.changes.push_back({peer_change::kind::up, who, added.gateway, {}, added.period});
  to.beats.push_back(who.id);
}

member_steps member_table::hear(node_id from, const std::vector<member_news>& news, std::int64_t now_ns) {
  member_steps steps;
  roster_.hear(from, news, now_ns);
  note_news(now_ns, steps);
  return steps;
}

member_steps member_table::hear_all(node_id from, const std::vector<member_news>& news, std::int64_t now_ns) {
  member_steps steps;
  roster_.hear_all(from, news, now_ns);
  note_news(now_ns, steps);
  return steps;
}

std::vector<member> member_table::take_strangers(std::int64_t now_ns) {
  std::vector<member> result;
  for (const auto id : roster_.neighbours()) {
    if (find(id) != nullptr || has_left_or_is_awaited(id) || living_rival(*roster_.find(id)) != nullptr) continue;
    auto& other = strangers_[id];
    if (!other.dial.begin()) continue;
    other.dial.next_ns = now_ns;
    result.push_back(*roster_.find(id));
  }
  return result;
}

member_steps member_table::want(const std::string& name, std::int64_t until_ns, std::int64_t now_ns) {
  const auto* found = roster_.find(name);
  return found == nullptr ? member_steps{} : want(found->id, until_ns, now_ns);
}

member_steps member_table::want(node_id who, std::int64_t until_ns, std::int64_t now_ns) {
  member_steps steps;
  const auto* found = roster_.find(who);
  if (found == nullptr || find(who) != nullptr) return steps;
  auto& other = strangers_[who];
  if (other.wanted_until_ns <= now_ns) other.is_tried = false;
  other.wanted_until_ns = std::max(other.wanted_until_ns, until_ns);
  other.dial.next_ns = now_ns;
  if (living_rival(*found) == nullptr && other.dial.begin()) steps.dials.push_back(*found);
  return steps;
}

member_steps member_table::pass_on() {
  member_steps steps;
  will_pass_on_ = false;
  const auto news = roster_.take_news();
  for (const auto id : listeners()) {
    std::vector<member_news> for_peer;
    const auto heard = find(id)->last_news;
    for (const auto& each : news)
      if (each.from != id && each.news.who.id != id && (each.number > heard || each.news.state >= member_state::gone))
        for_peer.push_back(each.news);
    if (!for_peer.empty()) steps.tells.emplace_back(id, std::move(for_peer));
  }
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
  if (peer == nullptr || peer->between != theirs) return steps;  // an answer from before the bond changed
  peer->signs.answered = true;
  peer->signs.seen_ns = now_ns;
  if (!peer->is_up && peer->is_connected) revive(*peer, now_ns, steps);
  return steps;
}

member_steps member_table::beat(std::int64_t now_ns, const std::function<bool(const known_peer&)>& hears,
                                const std::function<bool(node_id)>& shares) {
  member_steps steps;
  std::vector<node_id> forgotten;
  roster_.beat(now_ns);
  ++beats_;
  for (auto& [id, peer] : peers_) {
    const auto how = watch_of(peer, shares);
    auto& signs = peer.signs;
    if (how == watch::none) {
      signs.seen(now_ns);
      continue;
    }
    if (how == watch::in_turn && signs.answered && !has_turn(id)) continue;
    signs.missed = signs.answered ? 0 : signs.missed + 1;
    signs.answered = false;
    if (peer.is_up && signs.missed >= allowed_misses) {
      const bool mute = signs.missed >= most_misses;
      const auto silence = milliseconds_text(now_ns - signs.seen_ns);
      // Other bytes are a sign of life too, because on a slow network answers may wait behind many other bytes.
      if (mute || !hears(peer))
        lose(peer, (mute ? "no answer to a heartbeat for " : "no sign of life for ") + silence, now_ns, steps);
    }
    const auto away = now_ns - peer.lost_ns;
    if (!peer.is_up && (signs.missed >= allowed_misses || !peer.is_connected)) roster_.accuse(id, now_ns);
    if (!peer.is_up && away >= limits_.forget_after.count()) {
      forgotten.push_back(id);
      continue;
    }
    if (!peer.is_up && peer.is_connected && away >= intervals_to_cut * limits_.heartbeat.count()) {
      peer.is_connected = false;
      steps.cuts.push_back(peer.gateway);
    }
    if (peer.is_connected) steps.beats.push_back(id);
    if (peer.is_up && peer.is_connected && roster_.doubts(id)) steps.tells.emplace_back(id, roster_.about(id));
    if (!peer.is_connected && peer.dial.is_due(now_ns)) {
      peer.dial.begin();
      steps.dials.push_back(peer.who);
    }
  }
  for (const auto id : forgotten)
    forget(id, "unreachable for " + milliseconds_text(now_ns - find(id)->lost_ns), end::out_of_reach, now_ns, steps);
  if (beats_ % intervals_to_greet == 0) greet_next(steps);
  dial_gone(now_ns, steps);
  meet_strangers(now_ns, steps);
  note_news(now_ns, steps);
  return steps;
}

/// Returns the peers to which news are passed on: connected neighbours, and peers that are up here while other nodes suspect
/// them or take them for gone. A peer that other nodes take for gone is none of their neighbours, so it hears the news from
/// this node. A neighbour that is not connected hears the news when it is met.
std::vector<node_id> member_table::listeners() const {
  std::vector<node_id> result;
  for (const auto& [id, peer] : peers_)
    if (peer.is_connected && (roster_.is_neighbour(id) || (peer.is_up && roster_.doubts(id)))) result.push_back(id);
  return result;
}

member_table::watch member_table::watch_of(const known_peer& peer, const std::function<bool(node_id)>& shares) const {
  const auto id = peer.who.id;
  if (!peer.is_up || !shares || roster_.doubts(id) || shares(id)) return watch::always;
  return roster_.is_neighbour(id) ? watch::in_turn : watch::none;
}

/// Whether the neighbour gets a heartbeat in this interval (MT-4).
bool member_table::has_turn(node_id neighbour) const {
  const auto& all = roster_.neighbours();
  const auto turns = (all.size() + most_in_turn - 1) / most_in_turn;
  const auto at = static_cast<std::size_t>(std::lower_bound(all.begin(), all.end(), neighbour) - all.begin());
  return at % turns == beats_ % turns;
}

void member_table::wait_longer(redialling& dial, std::int64_t now_ns) {
  dial.pause_ns = std::clamp(2 * dial.pause_ns, shortest_pause_ns, longest_pause_ns);
  dial.next_ns = now_ns + dial.pause_ns;
}

void member_table::dial_gone(std::int64_t now_ns, member_steps& to) {
  using state = absent::state;
  for (auto& [id, node] : gone_) {
    if (node.is == state::awaited && now_ns - node.since_ns >= longest_wait_ns) node.is = state::given_up;
    if (node.is != state::awaited || !node.dial.is_due(now_ns)) continue;
    if (const auto* successor = living_rival(node.who)) {
      const auto& at = successor->who;
      if (at.host == node.who.host && at.port == node.who.port)
        node.is = state::given_up;  // a successor that is up listens there
      wait_longer(node.dial, now_ns);
      continue;
    }
    node.dial.begin();
    to.dials.push_back(node.who);
  }
}

/// Adds a member that will be dialled. If both nodes dialled at once, CAF might drop both connections. So the node with the
/// higher id waits for longer.
member_table::stranger& member_table::add_stranger(node_id id, std::int64_t now_ns) {
  auto& added = strangers_[id];
  added.dial.next_ns = now_ns + (self_.id < id ? 1 : 2) * intervals_to_meet * limits_.heartbeat.count();
  return added;
}

void member_table::meet_strangers(std::int64_t now_ns, member_steps& to) {
  for (const auto id : roster_.neighbours())
    if (find(id) == nullptr && !has_left_or_is_awaited(id) && !strangers_.contains(id)) add_stranger(id, now_ns);
  for (auto i = strangers_.begin(); i != strangers_.end();) {
    auto& [id, other] = *i;
    const auto* who = roster_.find(id);
    const bool is_needed =
      who != nullptr && (other.wanted_until_ns > now_ns || (roster_.is_neighbour(id) && !has_left_or_is_awaited(id)));
    if (is_needed && other.dial.is_due(now_ns) && living_rival(*who) == nullptr) {
      other.dial.begin();
      to.dials.push_back(*who);
    }
    const bool is_over = !is_needed && !other.dial.is_under_way;
    if (is_over && other.is_out_of_reach && who != nullptr && roster_.is_up(id) && find(id) == nullptr) tell_known(*who, to);
    if (is_over && !other.why.empty()) {
      auto& over = to.obstacles.emplace_back();
      if (who != nullptr) over.who = *who;
      over.who.id = id;
    }
    i = is_over ? strangers_.erase(i) : std::next(i);
  }
}

/// Greets the next neighbour once more. Two neighbours that greet each other compare what they have heard, so news that were
/// lost with a connection arrive later.
void member_table::greet_next(member_steps& to) {
  node_id next;
  for (const auto last : {last_greeted_, node_id{}}) {
    for (const auto id : roster_.neighbours())
      if (find_up(id) != nullptr && id > last && (next == node_id{} || id < next)) next = id;
    if (next != node_id{}) break;
  }
  if (next != node_id{}) to.greets.push_back(next);
  last_greeted_ = next;
}

/// Turns the changes of the roster into steps: reports to the subscribers, and dials.
void member_table::note_news(std::int64_t now_ns, member_steps& to) {
  using heard = roster::change::kind;
  for (auto& each : roster_.take_changes()) {
    const auto id = each.who.id;
    if (each.what == heard::clash) {
      to.changes.push_back({peer_change::kind::clash, std::move(each.who), nullptr, std::move(each.reason)});
      continue;
    }
    if (find(id) != nullptr || has_left_or_is_awaited(id)) continue;  // this node finds out by itself whether it is up
    if (each.what == heard::contested) {
      contest(id, now_ns);
      if (living_rival(each.who) == nullptr && strangers_[id].dial.begin()) to.dials.push_back(each.who);
    } else if (each.what != heard::arrived) {
      tell_lost(each.who, each.reason, each.what == heard::gone, to);
    } else if (roster_.is_neighbour(id)) {
      const auto tried = strangers_.find(id);
      (tried == strangers_.end() ? add_stranger(id, now_ns) : tried->second).is_out_of_reach = true;
    } else {
      tell_known(each.who, to);
    }
  }
  if (!roster_.has_news() || std::exchange(will_pass_on_, true)) return;
  to.passes_on = true;
}

void member_table::contest(node_id holder, std::int64_t now_ns) {
  if (find(holder) != nullptr) return;
  auto& other = strangers_.contains(holder) ? strangers_[holder] : add_stranger(holder, now_ns);
  other.is_contested = true;
  other.wanted_until_ns = std::max(other.wanted_until_ns, now_ns + intervals_of_patience * limits_.heartbeat.count());
}

void member_table::tell_known(const member& who, member_steps& to) {
  auto* last = roster_.told_of(who.id);
  if (last == nullptr || std::exchange(*last, roster::told::known) == roster::told::known) return;
  to.changes.push_back({peer_change::kind::known, who, nullptr, {}});
}

void member_table::tell_lost(const member& who, const std::string& reason, bool is_gone, member_steps& to) {
  using told = roster::told;
  auto* last = roster_.told_of(who.id);
  if (last == nullptr || *last == told::nothing || (*last == told::lost && !is_gone)) return;
  *last = is_gone ? told::nothing : told::lost;
  to.changes.push_back({peer_change::kind::lost, who, nullptr, reason, 0, 0, is_gone});
}

member_steps member_table::suspect(node_id who, std::int64_t now_ns) {
  member_steps steps;
  if (auto* peer = find(who); peer != nullptr && peer->is_up)
    lose(*peer, "did not answer when another node claimed its name", now_ns, steps);
  return steps;
}

/// The node with the lower id dials at once, and the other node later. If both nodes dialled at once, CAF might drop both
/// connections.
member_steps member_table::connection_lost(node_id of, std::int64_t now_ns) {
  member_steps steps;
  auto* peer = find(of);
  if (peer == nullptr || !peer->is_connected) return steps;
  peer->is_connected = false;
  peer->has_hung_up = true;
  if (peer->is_up) lose(*peer, "connection lost", now_ns, steps);
  peer->dial.next_ns = now_ns + (self_.id < of ? 0 : limits_.heartbeat.count());
  if (!peer->dial.is_due(now_ns)) return steps;
  peer->dial.begin();
  steps.dials.push_back(peer->who);
  return steps;
}

void member_table::forget_stranger(const member& who, member_steps& to) {
  const auto found = strangers_.extract(who.id);
  if (found && !found.mapped().why.empty()) to.obstacles.push_back({who, {}});
}

member_steps member_table::dialled(node_id who, dial_end how, std::int64_t now_ns, const std::string& why) {
  member_steps steps;
  if (auto* peer = find(who)) {
    peer->dial.is_under_way = false;
    if (peer->is_up || how == dial_end::reached) return steps;
    if (how == dial_end::is_stopping) return left(who, why, now_ns);
    if (how == dial_end::another_listens)
      forget(who, "another program listens at its address", end::replaced, now_ns, steps);
    else if (how == dial_end::nobody_listens)
      forget(who, "its process has ended: no program listens at its address", end::ended, now_ns, steps);
    else
      peer->dial.next_ns = now_ns + limits_.heartbeat.count();
    return steps;
  }
  if (how == dial_end::is_stopping) roster_.end(who, member_state::left, why, now_ns);
  if (const auto found = strangers_.find(who); found != strangers_.end()) {
    auto& other = found->second;
    other.dial.is_under_way = false;
    const bool is_wanted = other.wanted_until_ns > now_ns;
    const bool is_first = !std::exchange(other.is_tried, true);
    if (how == dial_end::nobody_listens && other.is_contested) {
      roster_.end(who, member_state::gone, "no program listens at its address, and another node has its name", now_ns);
      note_news(now_ns, steps);
      return steps;
    }
    if (how == dial_end::not_reached && is_wanted && is_first) {
      // The failure tells nothing, because the other node may have dialled this node at the same moment (MT-6).
      other.dial.next_ns = now_ns + (self_.id < who ? 1 : 2) * limits_.heartbeat.count();
      return steps;
    }
    wait_longer(other.dial, now_ns);
    if (is_wanted) other.dial.next_ns = now_ns + (other.dial.pause_ns = limits_.heartbeat.count());
    if (how != dial_end::reached) {
      other.is_out_of_reach = true;
      if (const auto* heard = roster_.find(who)) {  // an unknown member is not reported
        if (other.why.empty() && !why.empty()) steps.obstacles.push_back({*heard, why});
        other.why = why;
      }
      // This node does not reach the member. Other nodes may reach the member, which can then contradict.
      roster_.accuse(who, now_ns);
      if (const auto* heard = roster_.find(who)) tell_lost(*heard, "this node can't connect to it", false, steps);
    }
    note_news(now_ns, steps);
  }
  const auto found = gone_.find(who);
  if (found == gone_.end()) return steps;
  auto& node = found->second;
  node.dial.is_under_way = false;
  if (how == dial_end::is_stopping) node.is = absent::state::left;
  if (how == dial_end::another_listens && node.is == absent::state::awaited) node.is = absent::state::given_up;
  if (how == dial_end::reached) return steps;
  roster_.accuse(who, now_ns);
  note_news(now_ns, steps);
  wait_longer(node.dial, now_ns);
  return steps;
}

member_steps member_table::left(node_id who, const std::string& reason, std::int64_t now_ns) {
  member_steps steps;
  forget(who, reason, end::left, now_ns, steps);
  return steps;
}

/// If the bond of the other node has higher counts, takes the steps that the other node has taken already (see `bond`).
void member_table::take_over(node_id from, const bond& theirs, std::int64_t now_ns, member_steps& to) {
  if (theirs <= between(from)) return;
  auto* peer = find(from);
  if (peer == nullptr) {
    if (const auto found = gone_.find(from); found != gone_.end())
      found->second.between = theirs;
    else
      gone_[from] = {{}, theirs, "it held this node for gone", absent::state::given_up, now_ns};
    return drop_oldest();
  }
  if (theirs.partings > peer->between.partings)
    forget(from, "it held this node for gone", end::out_of_reach, now_ns, to);
  else if (peer->is_up)
    separate(*peer, "it held this node for unreachable", now_ns, to);
  if (peer = find(from); peer != nullptr)
    peer->between = theirs;
  else
    gone_[from].between = theirs;
}

void member_table::lose(known_peer& peer, const std::string& reason, std::int64_t now_ns, member_steps& to) {
  roster_.accuse(peer.who.id, now_ns);
  note_news(now_ns, to);
  separate(peer, reason, now_ns, to);
}

/// Makes the peer unreachable. Other nodes are not told.
void member_table::separate(known_peer& peer, const std::string& reason, std::int64_t now_ns, member_steps& to) {
  peer.is_up = false;
  peer.lost_ns = now_ns;
  ++peer.between.separations;
  to.changes.push_back({peer_change::kind::unreachable, peer.who, peer.gateway, reason, peer.period});
}

void member_table::revive(known_peer& peer, std::int64_t now_ns, member_steps& to) {
  const auto away = peer.is_up ? 0 : now_ns - peer.lost_ns;
  roster_.spoke(peer.who.id);
  peer.is_up = true;
  peer.has_hung_up = false;
  peer.period = ++last_period_;
  peer.signs.seen(now_ns);
  to.changes.push_back({peer_change::kind::up_again, peer.who, peer.gateway, {}, peer.period, away});
}

void member_table::forget(node_id who, const std::string& reason, end how, std::int64_t now_ns, member_steps& to) {
  auto peer = peers_.extract(who);
  if (!peer) return;
  const auto& lost = peer.mapped();
  if (auto* last = roster_.told_of(who)) *last = roster::told::nothing;
  if (how == end::left)
    roster_.end(who, member_state::left, reason, now_ns);
  else if (how != end::out_of_reach && lost.has_hung_up)
    roster_.end(who, member_state::gone, reason, now_ns);
  else if (how != end::out_of_reach)
    roster_.accuse(who, now_ns);  // other nodes may reach it, and it can then contradict
  to.changes.push_back({peer_change::kind::gone, lost.who, lost.gateway, reason, lost.period});
  const bond ended{lost.between.partings + 1, 0};
  auto& node = gone_[who];
  const auto state = how == end::left       ? absent::state::left
                     : how == end::replaced ? absent::state::given_up
                                            : absent::state::awaited;
  node = {lost.who, ended, reason, state, now_ns, {lost.dial.is_under_way, now_ns + shortest_pause_ns, shortest_pause_ns}};
  drop_oldest();
  note_news(now_ns, to);
}

void member_table::drop_oldest() {
  if (gone_.size() <= most_gone) return;
  gone_.erase(std::min_element(gone_.begin(), gone_.end(),
                               [](const auto& a, const auto& b) { return a.second.since_ns < b.second.since_ns; }));
}

}  // namespace troupe::membership
