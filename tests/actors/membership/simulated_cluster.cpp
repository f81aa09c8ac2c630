// SPDX-License-Identifier: BSD-3-Clause
#include "actors/membership/simulated_cluster.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe::test {

using membership::member_table;
using membership::peer_change;

simulated_cluster::settings simulated_cluster::settings::meshed(std::size_t count, std::uint64_t seed) {
  settings how;
  how.count = count;
  how.seed = seed;
  how.limits = {};
  how.longest_way_ns = 2 * ms;
  how.is_meshed = true;
  how.share_work = false;
  return how;
}

simulated_cluster::simulated_cluster(settings how) : how_(how), random_(how.seed), hosts_(how.count) {
  for (std::size_t i = 0; i < how_.count; ++i) {
    hosts_[i].self = new_self(i);
    hosts_[i].joins_by = (i + 1) % how_.count;
  }
  if (!how_.is_meshed) {
    for (std::size_t i = 0; i < how_.count; ++i) {
      hosts_[i].table = member_table(hosts_[i].self, how_.limits);
      begin(i);
    }
    return;
  }
  member_table first(hosts_[0].self, how_.limits);
  std::vector<member_news> all;
  for (const auto& each : hosts_) all.push_back({each.self, 0, member_state::up});
  first.hear({}, all, now_);
  first.pass_on();
  std::unordered_map<node_id, std::size_t> numbers;
  for (std::size_t i = 0; i < how_.count; ++i) {
    auto& each = hosts_[i];
    numbers[each.self.id] = i;
    each.table = i == 0 ? first : member_table(first.heard_of().seen_by(each.self), how_.limits);
    each.has_joined = true;
  }
  for (std::size_t i = 0; i < how_.count; ++i) {
    for (const auto id : hosts_[i].table.heard_of().neighbours()) {
      const auto other = numbers.at(id);
      connections_.try_emplace(pair_of(i, other), ++last_connection_);
      hosts_[i].table.met(hosts_[other].self, nullptr, {}, member_table::way::answers, now_);
      hosts_[i].last[id] = "up";
    }
    begin(i);
  }
}

void simulated_cluster::pass(std::int64_t ns, bool faults) {
  const auto end = now_ + ns;
  fault_ns_ = now_;
  while (!events_.empty() && events_.top().due_ns <= end) {
    const auto next = events_.top();
    events_.pop();
    for (; faults && fault_ns_ < next.due_ns; fault_ns_ += 5 * ms) go_wrong();
    now_ = std::max(now_, next.due_ns);
    auto& host = hosts_[next.host];
    if (next.what != timer::message && (host.lives != next.life || host.is_dead)) continue;
    if (host.is_frozen) {  // a frozen process does everything late
      events_.push({now_ + 20 * ms, ++last_event_, next.what, next.host, next.life, next.carried});
      continue;
    }
    switch (next.what) {
      case timer::beat:
        beat(next.host);
        break;
      case timer::pass_on:
        act(next.host, host.table.pass_on());
        break;
      case timer::dial:
        for (const auto& [id, deadline] : std::map(host.dials))
          if (now_ >= deadline) end_dial(next.host, id, member_table::dial_end::not_reached);
        break;
      case timer::message:
        receive(*next.carried);
        break;
    }
  }
  now_ = end;
}

void simulated_cluster::heal() {
  cut_.clear();
  parted_ = 0;
  lossy_ = false;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i].is_frozen = false;
    if (hosts_[i].is_dead) start(i);
  }
}

void simulated_cluster::kill(std::size_t which) {
  for (std::size_t other = 0; other < hosts_.size(); ++other)
    if (other != which) break_connection(which, other);
  hosts_[which].is_dead = true;
}

void simulated_cluster::leave(std::size_t which) {
  for (std::size_t other = 0; other < hosts_.size(); ++other)
    if (connection(which, other) != 0) send(from(which, message::kind::farewell, other));
  hosts_[which].is_dead = true;
}

void simulated_cluster::start(std::size_t which) {
  auto& each = hosts_[which];
  if (!each.is_dead) kill(which);
  const auto life = each.lives + 1;
  const auto joins_by = each.joins_by;
  each = host();
  each.lives = life;
  each.joins_by = joins_by;
  each.self = new_self(which);
  each.table = member_table(each.self, how_.limits);
  begin(which);
}

std::size_t simulated_cluster::join(std::size_t at) {
  auto& added = hosts_.emplace_back();
  const auto number = hosts_.size() - 1;
  added.self = new_self(number);
  added.joins_by = at;
  added.table = member_table(added.self, how_.limits);
  begin(number);
  return number;
}

void simulated_cluster::part(std::size_t first) { parted_ = first; }

bool simulated_cluster::is_up(std::size_t at, std::size_t who) const {
  const auto& table = hosts_[at].table;
  const auto id = hosts_[who].self.id;
  return table.find(id) != nullptr ? is_peer(at, who) : table.is_up(id);
}

bool simulated_cluster::is_peer(std::size_t at, std::size_t who) const {
  return hosts_[at].table.find_up(hosts_[who].self.id) != nullptr;
}

void simulated_cluster::forget_counts() {
  sent_ = 0;
  lost_ = gone_ = 0;
  for (auto& each : hosts_) each.sent = each.news_sent = each.members_told = 0;
}

bool simulated_cluster::is_cut(std::size_t from, std::size_t to) const {
  return (parted_ != 0 && (from < parted_) != (to < parted_)) || cut_.contains(way_of(from, to));
}

std::uint64_t simulated_cluster::connection(std::size_t a, std::size_t b) const {
  const auto found = connections_.find(pair_of(a, b));
  return found == connections_.end() ? 0 : found->second;
}

// Ids in a drawn order: whose id is lower must not depend on who starts first.
member simulated_cluster::new_self(std::size_t which) {
  const auto id = (random_() << 24 >> 1 | ++last_id_) + 1;
  return {"n" + std::to_string(which), node_id{id}, std::to_string(which), 4000};
}

void simulated_cluster::plan(std::int64_t in_ns, timer what, std::size_t host, std::shared_ptr<const message> carried) {
  events_.push({now_ + in_ns, ++last_event_, what, host, hosts_[host].lives, std::move(carried)});
}

void simulated_cluster::begin(std::size_t which) {
  plan(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(interval_ns()))), timer::beat, which);
}

void simulated_cluster::go_wrong() {
  const auto a = below(hosts_.size());
  const auto b = (a + 1 + below(hosts_.size() - 1)) % hosts_.size();
  switch (below(400)) {
    case 0:
      cut(a, b);
      break;
    case 1:
    case 2:
      cut_.erase(way_of(a, b));
      cut_.erase(way_of(b, a));
      break;
    case 3:
      break_connection(a, b);
      break;
    case 4:
      hosts_[a].is_frozen = true;
      break;
    case 5:
    case 6:
      hosts_[a].is_frozen = false;
      break;
    case 7:
      if (below(4) == 0) start(a);
      break;
    case 8:
      cut_.insert(way_of(a, b));  // one way only
      break;
    case 9:
      lossy_ = !lossy_;
      break;
    case 10:
      if (below(8) == 0) parted_ = parted_ == 0 ? 1 + below(hosts_.size() - 1) : 0;
      break;
  }
}

void simulated_cluster::break_connection(std::size_t a, std::size_t b) {
  if (connections_.erase(pair_of(a, b)) == 0) return;
  for (const auto& [one, other] : {std::pair{a, b}, std::pair{b, a}})
    if (!is_cut(one, other)) plan(0, timer::message, other, std::make_shared<message>(from(one, message::kind::lost, other)));
}

simulated_cluster::message simulated_cluster::from(std::size_t sender, message::kind what, std::size_t to) const {
  message result{what, sender, to, hosts_[sender].self.id, hosts_[to].self.id};
  result.connection = connection(sender, to);
  result.between = hosts_[sender].table.between(result.to_id);
  result.incarnation = hosts_[sender].table.incarnation();
  return result;
}

void simulated_cluster::send(message what) {
  ++sent_;
  ++hosts_[what.from].sent;
  hosts_[what.from].news_sent += what.what == message::kind::news;
  if (what.what == message::kind::news && !what.introduces) hosts_[what.from].members_told += what.news->size();
  if (is_cut(what.from, what.to) || (lossy_ && below(4) == 0)) return;
  const auto to = what.to;
  plan(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(how_.longest_way_ns))), timer::message, to,
       std::make_shared<message>(std::move(what)));
}

void simulated_cluster::dial(std::size_t from, const member& who) {
  auto& me = hosts_[from];
  const auto to = host_of(who);
  if (to == from) return;
  me.dials[who.id] = now_ + 10 * interval_ns();
  me.addresses[who.id] = static_cast<std::uint32_t>(to);
  plan(10 * interval_ns(), timer::dial, from);
  greet(from, to, who.id);
}

void simulated_cluster::greet(std::size_t from, std::size_t to, node_id expected) {
  if (is_cut(from, to) || is_cut(to, from) || hosts_[to].is_frozen) return;
  if (hosts_[to].is_dead || rejected_.contains(way_of(from, to))) {
    auto nobody = this->from(to, message::kind::nobody, from);
    nobody.from_id = expected;
    plan(how_.longest_way_ns, timer::message, from, std::make_shared<message>(nobody));
    return;
  }
  if (connection(from, to) == 0) connections_[pair_of(from, to)] = ++last_connection_;
  auto greeting = this->from(from, message::kind::hello, to);
  if (greeting.to_id != expected) greeting.between = {};
  greeting.digest = hosts_[from].table.digest(expected);
  send(greeting);
}

void simulated_cluster::end_dial(std::size_t at, node_id whom, member_table::dial_end how) {
  hosts_[at].dials.erase(whom);
  act(at, hosts_[at].table.dialled(whom, how, now_));
}

/// A node that a dial was to reach, or another node at its address, has answered.
void simulated_cluster::end_dials(std::size_t at, const member& who) {
  using end = member_table::dial_end;
  for (const auto& [id, deadline] : std::map(hosts_[at].dials))
    if (hosts_[at].addresses.at(id) == host_of(who)) end_dial(at, id, id == who.id ? end::reached : end::another_listens);
}

void simulated_cluster::check_heard(std::size_t at, const peer_change& news) {  // MT-7
  const bool is_known = news.what == peer_change::kind::known;
  auto& last = hosts_[at].last_heard[news.who.id];
  const std::string now = is_known ? "known" : news.is_gone ? "gone" : "lost";
  const bool allowed = is_known ? last != "known" : last != "gone" && (news.is_gone || last != "lost");
  if (!allowed) throw std::logic_error("seed " + std::to_string(how_.seed) + ": '" + now + "' came after '" + last + "'");
  last = now;
  lost_ += now == "lost";
  gone_ += now == "gone";
}

void simulated_cluster::check(std::size_t at, const peer_change& news) {
  using kind = peer_change::kind;
  if (news.what == kind::known || news.what == kind::lost) return check_heard(at, news);
  if (news.what == kind::clash) return;
  hosts_[at].last_heard.erase(news.who.id);
  auto& last = hosts_[at].last[news.who.id];
  const std::string now = news.what == kind::gone ? "gone" : news.what == kind::unreachable ? "unreachable" : "up";
  const auto allowed = last.empty() || last == "gone" ? news.what == kind::up
                       : last == "up"                 ? news.what != kind::up && news.what != kind::up_again
                                                      : news.what == kind::up_again || news.what == kind::gone;
  if (!allowed) throw std::logic_error("seed " + std::to_string(how_.seed) + ": '" + now + "' came after '" + last + "'");
  last = now;
  separations_ += news.what == kind::unreachable;
  partings_ += news.what == kind::gone;
}

void simulated_cluster::act(std::size_t at, membership::member_steps steps) {
  auto& me = hosts_[at];
  for (const auto& news : steps.changes) check(at, news);
  for (const auto id : steps.beats) {
    const auto* peer = me.table.find(id);
    if (peer == nullptr) continue;
    const auto to = host_of(peer->who);
    if (hosts_[to].self.id == id && connection(at, to) != 0) send(from(at, message::kind::beat, to));
  }
  for (const auto id : steps.greets) {
    const auto* peer = me.table.find(id);
    if (peer == nullptr) continue;
    const auto to = host_of(peer->who);
    if (hosts_[to].self.id == id && connection(at, to) != 0) greet(at, to, id);
  }
  for (auto& [id, news] : steps.tells) {
    const auto* peer = me.table.find(id);
    if (peer == nullptr) continue;
    const auto to = host_of(peer->who);
    if (hosts_[to].self.id != id || connection(at, to) == 0) continue;
    auto what = from(at, message::kind::news, to);
    what.news = std::make_shared<std::vector<member_news>>(std::move(news));
    send(what);
  }
  if (steps.passes_on) plan(interval_ns() / 8, timer::pass_on, at);
  for (const auto& who : steps.dials) dial(at, who);
}

void simulated_cluster::beat(std::size_t which) {
  auto& me = hosts_[which];
  plan(interval_ns(), timer::beat, which);
  if (!me.has_joined && me.joins_by != which) greet(which, me.joins_by, hosts_[me.joins_by].self.id);
  const auto shares = [this](node_id) { return how_.share_work; };
  std::vector<node_id> connected;
  for (const auto& [id, peer] : me.table.peers())
    if (peer.is_connected) connected.push_back(id);
  auto steps = me.table.beat(
    now_, [](const membership::known_peer&) { return false; }, shares);
  for (const auto id : connected)  // the simulation has no gateways that `cuts` could name
    if (const auto* peer = me.table.find(id); peer != nullptr && !peer->is_connected)
      if (const auto other = host_of(peer->who); hosts_[other].self.id == id) break_connection(which, other);
  act(which, std::move(steps));
}

void simulated_cluster::meet(std::size_t at, const message& got, member_table::way how) {
  auto& me = hosts_[at];
  const auto& other = hosts_[got.from].self;
  if (me.table.find(got.from_id) == nullptr)
    if (const auto* rival = me.table.rival(other)) act(at, me.table.left(rival->who.id, "replaced", now_));
  act(at, me.table.met(other, nullptr, got.between, how, now_, got.incarnation));
}

/// Takes in what the other node has heard, and greets the new neighbours.
void simulated_cluster::learn(std::size_t at, const message& got) {
  auto& table = hosts_[at].table;
  act(at, table.hear_all(got.from_id, *got.news, now_));
  for (const auto& other : table.take_strangers(now_)) dial(at, other);
}

void simulated_cluster::receive(const message& got) {
  auto& me = hosts_[got.to];
  if (me.is_dead || got.to_id != me.self.id) return;
  if (got.what == message::kind::lost) return act(got.to, me.table.connection_lost(got.from_id, now_));
  if (got.what == message::kind::nobody) {
    if (me.dials.contains(got.from_id)) end_dial(got.to, got.from_id, member_table::dial_end::nobody_listens);
    return;
  }
  if (got.connection != connection(got.from, got.to) || got.from_id != hosts_[got.from].self.id) return;
  switch (got.what) {
    case message::kind::hello: {
      meet(got.to, got, member_table::way::hears);
      auto answer = from(got.to, message::kind::welcome, got.from);
      if (auto news = me.table.news_for(got.from_id, got.digest); !news.empty())
        answer.news = std::make_shared<std::vector<member_news>>(std::move(news));
      return send(answer);
    }
    case message::kind::welcome:
      end_dials(got.to, hosts_[got.from].self);
      meet(got.to, got, member_table::way::answers);
      if (me.table.between(got.from_id) != got.between) return greet(got.to, got.from, got.from_id);
      me.has_joined = me.has_joined || got.from == me.joins_by;
      if (got.news == nullptr) return;
      learn(got.to, got);
      if (auto more = me.table.beyond(*got.news); !more.empty()) {
        auto introduction = from(got.to, message::kind::news, got.from);
        introduction.news = std::make_shared<std::vector<member_news>>(std::move(more));
        introduction.introduces = true;
        send(introduction);
      }
      return;
    case message::kind::beat:
      act(got.to, me.table.heard(got.from_id, got.between, now_));
      return send(from(got.to, me.table.find(got.from_id) != nullptr ? message::kind::seen : message::kind::refused, got.from));
    case message::kind::seen:
      return act(got.to, me.table.answered(got.from_id, got.between, now_));
    case message::kind::refused:
      return greet(got.to, got.from, got.from_id);
    case message::kind::farewell:
      act(got.to, me.table.left(got.from_id, "left", now_));
      connections_.erase(pair_of(got.from, got.to));
      return;
    case message::kind::news:
      if (me.table.find(got.from_id) == nullptr) return;
      return got.introduces ? learn(got.to, got) : act(got.to, me.table.hear(got.from_id, *got.news, now_));
    case message::kind::lost:
    case message::kind::nobody:
      return;
  }
}

}  // namespace troupe::test
