// SPDX-License-Identifier: BSD-3-Clause
#include "actors/membership/simulated_cluster.hpp"

#include <algorithm>
#include <stdexcept>

#include "simulation/wire_bytes.hpp"

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

namespace {

simulation::network_costs with_jitter(simulation::network_costs costs, std::int64_t jitter_ns) {
  costs.jitter_ns = jitter_ns;
  return costs;
}

}  // namespace

simulated_cluster::simulated_cluster(settings how)
    : how_(how),
      random_(how.seed),
      network_(clock_, how.count, with_jitter(how.costs, how.longest_way_ns), how.seed + 1),
      hosts_(how.count) {
  if (how_.loses_what_is_cut) network_.lose_what_is_cut();
  network_.on_lost = [this](std::size_t at, std::size_t other) { lost(at, other); };
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
  first.hear({}, all, now_ns());
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
      network_.connect(i, other);
      hosts_[i].table.met(hosts_[other].self, nullptr, {}, member_table::way::answers, now_ns());
      hosts_[i].last[id] = "up";
    }
    begin(i);
  }
}

void simulated_cluster::pass(std::int64_t ns, bool faults) {
  const auto end = now_ns() + ns;
  for (; faults && now_ns() < end; clock_.run_until(std::min(end, now_ns() + 5 * ms))) go_wrong();
  clock_.run_until(end);
}

void simulated_cluster::heal() {
  network_.mend_all();
  network_.lose_one_of(0);
  lossy_ = false;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    network_.thaw(i);
    if (!network_.is_running(i)) start(i);
  }
}

void simulated_cluster::kill(std::size_t which) { network_.end(which); }

void simulated_cluster::leave(std::size_t which) {
  for (std::size_t other = 0; other < hosts_.size(); ++other)
    if (network_.connection(which, other) != 0) send(from(which, message::kind::farewell, other));
  network_.end_quietly(which);
}

void simulated_cluster::start(std::size_t which) {
  auto& each = hosts_[which];
  if (network_.is_running(which)) kill(which);
  network_.start(which);
  const auto joins_by = each.joins_by;
  each = host();
  each.joins_by = joins_by;
  each.self = new_self(which);
  each.table = member_table(each.self, how_.limits);
  begin(which);
}

std::size_t simulated_cluster::join(std::size_t at) {
  auto& added = hosts_.emplace_back();
  const auto number = network_.add_node();
  added.self = new_self(number);
  added.joins_by = at;
  added.table = member_table(added.self, how_.limits);
  begin(number);
  return number;
}

void simulated_cluster::part(std::size_t first) { network_.part(first); }

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

// Ids in a drawn order: whose id is lower must not depend on who starts first.
member simulated_cluster::new_self(std::size_t which) {
  const auto id = (random_() << 24 >> 1 | ++last_id_) + 1;
  return {"n" + std::to_string(which), node_id{id}, std::to_string(which), 4000};
}

void simulated_cluster::begin(std::size_t which) {
  network_.after(which, static_cast<std::int64_t>(below(static_cast<std::uint64_t>(interval_ns()))),
                 [=, this] { beat(which); });
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
      network_.mend_way(a, b);
      network_.mend_way(b, a);
      break;
    case 3:
      network_.disconnect(a, b);
      break;
    case 4:
      freeze(a);
      break;
    case 5:
    case 6:
      thaw(a);
      break;
    case 7:
      if (below(4) == 0) start(a);
      break;
    case 8:
      network_.cut_way(a, b);  // one way only
      break;
    case 9:
      lossy_ = !lossy_;
      network_.lose_one_of(lossy_ ? 4 : 0);
      break;
    case 10:
      if (below(8) == 0) part(network_.parted() == 0 ? 1 + below(hosts_.size() - 1) : 0);
      break;
  }
}

simulated_cluster::message simulated_cluster::from(std::size_t sender, message::kind what, std::size_t to) const {
  message result{what, sender, to, hosts_[sender].self.id, hosts_[to].self.id};
  result.between = hosts_[sender].table.between(result.to_id);
  result.incarnation = hosts_[sender].table.incarnation();
  return result;
}

void simulated_cluster::send(message what) {
  ++sent_;
  ++hosts_[what.from].sent;
  hosts_[what.from].news_sent += what.what == message::kind::news;
  if (what.what == message::kind::news && !what.introduces) hosts_[what.from].members_told += what.news->size();
  const auto [from, to, bytes] = std::tuple(what.from, what.to, how_.counts_bytes ? bytes_of(what) : 0);
  network_.send(from, to, bytes, [this, carried = std::make_shared<const message>(std::move(what))] { receive(*carried); });
}

std::uint64_t simulated_cluster::bytes_of(const message& what) const {
  const auto news = what.news == nullptr ? std::vector<member_news>() : *what.news;
  const auto& self = hosts_[what.from].self;
  switch (what.what) {
    case message::kind::hello:
      return simulation::wire_bytes(hello{self.name, self.id, self.host, self.port, 1, what.digest, what.to_id, what.between,
                                          "n" + hosts_[what.to].self.host, what.incarnation, self.formats, self.devices});
    case message::kind::welcome:
      return simulation::wire_bytes(welcome{self, news, what.between, what.incarnation});
    case message::kind::beat:
      return simulation::wire_bytes(heartbeat{self.id, now_ns(), what.between});
    case message::kind::seen:
      return simulation::wire_bytes(heartbeat_seen{self.id, now_ns(), now_ns(), what.between});
    case message::kind::farewell:
      return simulation::wire_bytes(farewell{self.id, "left"});
    case message::kind::news:
      return simulation::wire_bytes(gossip{self.id, news, what.introduces});
    case message::kind::refused:  // an error, as CAF writes it
      return 100;
  }
  return 0;
}

void simulated_cluster::lost(std::size_t at, std::size_t other) {
  act(at, hosts_[at].table.connection_lost(hosts_[other].self.id, now_ns()));
}

void simulated_cluster::dial(std::size_t from, const member& who) {
  auto& me = hosts_[from];
  const auto to = host_of(who);
  if (to == from) return;
  me.dials[who.id] = now_ns() + 10 * interval_ns();
  me.addresses[who.id] = static_cast<std::uint32_t>(to);
  network_.after(from, 10 * interval_ns(), [=, this] {
    for (const auto& [id, deadline] : std::map(hosts_[from].dials))
      if (now_ns() >= deadline) end_dial(from, id, member_table::dial_end::not_reached);
  });
  greet(from, to, who.id);
}

void simulated_cluster::greet(std::size_t from, std::size_t to, node_id expected) {
  if (network_.is_cut(from, to) || network_.is_cut(to, from) || network_.is_frozen(to)) return;
  if (!network_.is_running(to) || rejected_.contains(way_of(from, to))) {
    network_.after(from, how_.longest_way_ns, [=, this] {
      if (hosts_[from].dials.contains(expected)) end_dial(from, expected, member_table::dial_end::nobody_listens);
    });
    return;
  }
  network_.connect(from, to);
  auto greeting = this->from(from, message::kind::hello, to);
  if (greeting.to_id != expected) greeting.between = {};
  greeting.digest = hosts_[from].table.digest(expected);
  send(greeting);
}

void simulated_cluster::end_dial(std::size_t at, node_id whom, member_table::dial_end how) {
  hosts_[at].dials.erase(whom);
  act(at, hosts_[at].table.dialled(whom, how, now_ns()));
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
  for (const auto& news : steps.changes) {
    check(at, news);
    if (on_change) on_change(at, news);
  }
  for (const auto id : steps.beats) {
    const auto* peer = me.table.find(id);
    if (peer == nullptr) continue;
    const auto to = host_of(peer->who);
    if (hosts_[to].self.id == id && network_.connection(at, to) != 0) send(from(at, message::kind::beat, to));
  }
  for (const auto id : steps.greets) {
    const auto* peer = me.table.find(id);
    if (peer == nullptr) continue;
    const auto to = host_of(peer->who);
    if (hosts_[to].self.id == id && network_.connection(at, to) != 0) greet(at, to, id);
  }
  for (auto& [id, news] : steps.tells) {
    const auto* peer = me.table.find(id);
    if (peer == nullptr) continue;
    const auto to = host_of(peer->who);
    if (hosts_[to].self.id != id || network_.connection(at, to) == 0) continue;
    auto what = from(at, message::kind::news, to);
    what.news = std::make_shared<std::vector<member_news>>(std::move(news));
    send(what);
  }
  if (steps.passes_on) network_.after(at, interval_ns() / 8, [=, this] { act(at, hosts_[at].table.pass_on()); });
  for (const auto& who : steps.dials) dial(at, who);
}

void simulated_cluster::beat(std::size_t which) {
  auto& me = hosts_[which];
  network_.after(which, interval_ns(), [=, this] { beat(which); });
  if (!me.has_joined && me.joins_by != which) greet(which, me.joins_by, hosts_[me.joins_by].self.id);
  const auto shares = [&](node_id with) { return this->shares ? this->shares(which, with) : how_.share_work; };
  std::vector<node_id> connected;
  for (const auto& [id, peer] : me.table.peers())
    if (peer.is_connected) connected.push_back(id);
  auto steps = me.table.beat(
    now_ns(), [](const membership::known_peer&) { return false; }, shares);
  for (const auto id : connected)  // the simulation has no gateways that `cuts` could name
    if (const auto* peer = me.table.find(id); peer != nullptr && !peer->is_connected)
      if (const auto other = host_of(peer->who); hosts_[other].self.id == id) network_.disconnect(which, other);
  act(which, std::move(steps));
}

void simulated_cluster::meet(std::size_t at, const message& got, member_table::way how) {
  auto& me = hosts_[at];
  const auto& other = hosts_[got.from].self;
  if (me.table.find(got.from_id) == nullptr)
    if (const auto* rival = me.table.rival(other)) act(at, me.table.left(rival->who.id, "replaced", now_ns()));
  act(at, me.table.met(other, nullptr, got.between, how, now_ns(), got.incarnation));
}

/// Takes in what the other node has heard, and greets the new neighbours.
void simulated_cluster::learn(std::size_t at, const message& got) {
  auto& table = hosts_[at].table;
  act(at, table.hear_all(got.from_id, *got.news, now_ns()));
  for (const auto& other : table.take_strangers(now_ns())) dial(at, other);
}

void simulated_cluster::receive(const message& got) {
  auto& me = hosts_[got.to];
  if (got.to_id != me.self.id || got.from_id != hosts_[got.from].self.id) return;
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
      act(got.to, me.table.heard(got.from_id, got.between, now_ns()));
      return send(from(got.to, me.table.find(got.from_id) != nullptr ? message::kind::seen : message::kind::refused, got.from));
    case message::kind::seen:
      return act(got.to, me.table.answered(got.from_id, got.between, now_ns()));
    case message::kind::refused:
      return greet(got.to, got.from, got.from_id);
    case message::kind::farewell:
      act(got.to, me.table.left(got.from_id, "left", now_ns()));
      network_.disconnect_quietly(got.from, got.to);
      return;
    case message::kind::news:
      if (me.table.find(got.from_id) == nullptr) return;
      return got.introduces ? learn(got.to, got) : act(got.to, me.table.hear(got.from_id, *got.news, now_ns()));
  }
}

}  // namespace troupe::test
