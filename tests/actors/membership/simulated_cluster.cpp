// SPDX-License-Identifier: BSD-3-Clause
#include "actors/membership/simulated_cluster.hpp"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include <caf/sec.hpp>

#include "simulation/wire_bytes.hpp"

namespace troupe::test {

using membership::greetings;
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
  greeting_.heartbeat = how_.limits.heartbeat;
  greeting_.forget_after = how_.limits.forget_after;
  greeting_.accept = [this](node_id) { return how_.overtaken_one_of == 0 || below(how_.overtaken_one_of) != 0; };
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
    if (!network_.is_running(i) || hosts_[i].self.name != "n" + hosts_[i].self.host) start(i);
  }
}

void simulated_cluster::kill(std::size_t which) { network_.end(which); }

void simulated_cluster::leave(std::size_t which) {
  for (std::size_t other = 0; other < hosts_.size(); ++other)
    if (network_.connection(which, other) != 0) send(which, other, farewell{hosts_[which].self.id, "left"});
  network_.end_quietly(which);
}

void simulated_cluster::start(std::size_t which, const std::string& name) {
  auto& each = hosts_[which];
  if (network_.is_running(which)) kill(which);
  network_.start(which);
  const auto joins_by = each.joins_by;
  each = host();
  each.joins_by = joins_by;
  each.self = new_self(which, name);
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

void simulated_cluster::separate(std::size_t first) { network_.separate(first); }

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
member simulated_cluster::new_self(std::size_t which, const std::string& name) {
  const auto id = (random_() << 24 >> 1 | ++last_id_) + 1;
  const auto host = std::to_string(which);
  return {name.empty() ? "n" + host : name, node_id{id}, host, 4000};
}

void simulated_cluster::begin(std::size_t which) {
  hosts_[which].greetings = std::make_unique<greetings>(hosts_[which].table, greeting_);
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
      if (below(8) == 0) separate(network_.parted() == 0 ? 1 + below(hosts_.size() - 1) : 0);
      break;
    case 11:
      if (how_.has_rivals && below(4) == 0) start(a, hosts_[b].self.name);
      break;
  }
}

template <class What>
void simulated_cluster::send(std::size_t from, std::size_t to, What what, std::uint64_t number) {
  ++sent_;
  auto& sender = hosts_[from];
  ++sender.sent;
  if constexpr (std::is_same_v<What, gossip>) {
    ++sender.news_sent;
    if (!what.introduces) sender.members_told += what.news.size();
  }
  std::uint64_t bytes = 0;
  if constexpr (std::is_same_v<What, caf::error>)
    bytes = how_.counts_bytes ? 100 : 0;  // as CAF writes it
  else
    bytes = how_.counts_bytes ? simulation::wire_bytes(what) : 0;
  const auto carried =
    std::make_shared<const message>(message{from, to, sender.self.id, hosts_[to].self.id, number, std::move(what)});
  network_.send(from, to, bytes, [this, carried] { receive(*carried); });
}

/// Whether the connection to this very process stands.
bool simulated_cluster::is_connected(std::size_t at, const member& to) const {
  return hosts_[host_of(to)].self.id == to.id && network_.connection(at, host_of(to)) != 0;
}

void simulated_cluster::lost(std::size_t at, std::size_t other) {
  for (const auto& [wait, to] : std::map(hosts_[at].asked))
    if (to == other) unanswered(at, wait);
  act(at, hosts_[at].table.connection_lost(hosts_[other].self.id, now_ns()));
}

void simulated_cluster::take(std::size_t at, membership::greeting_event event) {
  for (auto& each : hosts_[at].greetings->on(std::move(event), now_ns()))
    std::visit([this, at](auto& effect) { carry_out(at, effect); }, each);
}

void simulated_cluster::take_later(std::size_t at, std::int64_t delay_ns, membership::greeting_event event) {
  network_.after(at, delay_ns, [=, this] { take(at, event); });
}

void simulated_cluster::carry_out(std::size_t at, const membership::dial_address& what) {
  const auto to = std::stoul(what.host);
  if (to != at && (network_.is_cut(at, to) || network_.is_cut(to, at) || network_.is_frozen(to)))
    return take_later(at, what.patience.count(), membership::try_failed{what.wait, caf::sec::request_timeout});
  if (!network_.is_running(to) || rejected_.contains(way_of(at, to)))
    return take_later(at, how_.longest_way_ns, membership::try_failed{what.wait, caf::sec::cannot_connect_to_node});
  if (to != at) network_.connect(at, to);
  take(at, membership::address_connected{what.wait, nullptr, to == at});
}

void simulated_cluster::carry_out(std::size_t at, membership::say_hello& what) {
  const auto to = host_of(what.whom);
  hosts_[at].asked[what.wait] = to;
  network_.after(at, what.patience.count(), [=, this, wait = what.wait] { unanswered(at, wait); });
  if (network_.connection(at, to) != 0) send(at, to, std::move(what.greeting), what.wait);
}

void simulated_cluster::unanswered(std::size_t at, std::uint64_t wait) {
  hosts_[at].asked.erase(wait);
  take(at, membership::try_failed{wait, caf::sec::request_timeout});
}

void simulated_cluster::carry_out(std::size_t at, const membership::ask_rival& what) {
  const auto& me = hosts_[at];
  const auto& rival = *me.table.find(what.whom);
  take_later(at, what.patience.count(), membership::holder_silent{what.wait});
  if (is_connected(at, rival.who)) send(at, host_of(rival.who), heartbeat{me.self.id, now_ns(), rival.between}, what.wait);
}

void simulated_cluster::carry_out(std::size_t at, const membership::ask_holder& what) {
  auto& me = hosts_[at];
  me.searches[what.wait] = what.whom;
  network_.after(at, what.patience.count(), [=, this, wait = what.wait] {
    if (hosts_[at].searches.erase(wait) > 0) take(at, membership::holder_silent{wait});
  });
  act(at, me.table.want(what.whom, now_ns() + what.patience.count(), now_ns()));
}

void simulated_cluster::carry_out(std::size_t at, const membership::begin_pause& what) {
  take_later(at, what.time.count(), membership::pause_over{what.wait});
}

template <class Answer>
void simulated_cluster::answer(std::size_t at, std::uint64_t caller, Answer what) {
  const auto whom = std::move(hosts_[at].callers.extract(caller).mapped());
  if (hosts_[whom.from].self.id == whom.id) send(at, whom.from, std::move(what), whom.number);
}

void simulated_cluster::carry_out(std::size_t at, membership::accept_hello& what) {
  answer(at, what.caller, std::move(what.answer));
}

void simulated_cluster::carry_out(std::size_t at, const membership::refuse_hello& what) {
  names_refused_ += what.warning.find("is taken by") != std::string::npos;
  answer(at, what.caller, what.why);
}

void simulated_cluster::carry_out(std::size_t at, const membership::say_farewell& what) {
  send(at, host_of(what.whom), farewell{hosts_[at].self.id, what.reason});
}

void simulated_cluster::carry_out(std::size_t at, membership::introduce& what) {
  tell(at, what.to, std::move(what.news), true);
}

void simulated_cluster::carry_out(std::size_t at, const membership::join_ended& what) {
  auto& me = hosts_[at];
  if (what.join != me.join) return;
  me.join = 0;
  me.has_joined = !what.how.failure;
}

/// Tells a peer the news.
void simulated_cluster::tell(std::size_t at, node_id to, std::vector<member_news> news, bool introduces) {
  const auto* peer = hosts_[at].table.find(to);
  if (peer == nullptr || news.empty() || !is_connected(at, peer->who)) return;
  send(at, host_of(peer->who), gossip{hosts_[at].self.id, std::move(news), introduces});
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
  if (news.what == kind::up)
    for (const auto& [id, peer] : hosts_[at].table.peers())
      if (id != news.who.id && peer.who.name == news.who.name && hosts_[at].table.find(news.who.id) != nullptr)
        throw std::logic_error("seed " + std::to_string(how_.seed) + ": two peers have the name '" + news.who.name + "'");
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
  using kind = peer_change::kind;
  for (const auto& news : steps.changes) {
    check(at, news);
    if (on_change) on_change(at, news);
    const bool is_up = news.what == kind::up || news.what == kind::up_again;
    // CAF tells an actor at once if the gateway that it begins to monitor has ended already.
    if (is_up && !is_connected(at, news.who))
      network_.after(at, 0, [=, this, id = news.who.id] { act(at, hosts_[at].table.connection_lost(id, now_ns())); });
    if (!is_up && news.what != kind::gone && !news.is_gone) continue;
    for (const auto& [wait, whom] : std::map(me.searches)) {
      if (whom != news.who.id || me.searches.erase(wait) == 0) continue;
      if (is_up)
        take(at, membership::holder_answered{wait});
      else
        take(at, membership::holder_silent{wait});
    }
  }
  for (const auto id : steps.beats)
    if (const auto* peer = me.table.find(id); peer != nullptr && is_connected(at, peer->who))
      send(at, host_of(peer->who), heartbeat{me.self.id, now_ns(), peer->between});
  for (const auto id : steps.greets) take(at, membership::greeting_wanted{id});
  for (auto& [id, news] : steps.tells) tell(at, id, std::move(news), false);
  if (steps.passes_on) network_.after(at, interval_ns() / 8, [=, this] { act(at, hosts_[at].table.pass_on()); });
  for (const auto& who : steps.dials) take(at, membership::dial_wanted{who});
}

void simulated_cluster::beat(std::size_t which) {
  auto& me = hosts_[which];
  network_.after(which, interval_ns(), [=, this] { beat(which); });
  if (!me.has_joined && me.joins_by != which && me.join == 0) {
    me.join = me.greetings->new_number();
    constexpr std::int64_t for_ever = 1'000'000'000'000'000'000;
    take(which,
         membership::join_begun{me.join, {.deadline_ns = for_ever, .is_patient = true}, std::to_string(me.joins_by), 4000});
  }
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

void simulated_cluster::receive(const message& got) {
  if (got.to_id == hosts_[got.to].self.id && got.from_id == hosts_[got.from].self.id)
    std::visit([&](const auto& what) { receive(got, what); }, got.what);
}

void simulated_cluster::receive(const message& got, const hello& what) {
  auto& me = hosts_[got.to];
  const auto number = me.greetings->new_number();
  me.callers[number] = {got.from, got.from_id, got.number};
  take(got.to, membership::hello_came{number, what, nullptr, {}});
}

void simulated_cluster::receive(const message& got, const welcome& what) {
  hosts_[got.to].asked.erase(got.number);
  take(got.to, membership::hello_welcomed{got.number, what, nullptr, {}});
}

/// The answer to a greeting or a heartbeat.
void simulated_cluster::receive(const message& got, const caf::error& what) {
  if (got.number == 0) return take(got.to, membership::greeting_wanted{got.from_id});
  if (hosts_[got.to].asked.erase(got.number) == 0) return take(got.to, membership::holder_silent{got.number});
  take(got.to, membership::try_failed{got.number, what});
}

void simulated_cluster::receive(const message& got, const heartbeat& what) {
  auto& me = hosts_[got.to];
  act(got.to, me.table.heard(got.from_id, what.between, now_ns()));
  if (me.table.find(got.from_id) == nullptr)
    send(got.to, got.from, make_error(errc::unknown_peer, "not greeted"), got.number);
  else
    send(got.to, got.from, heartbeat_seen{me.self.id, what.sent_ns, now_ns(), me.table.between(got.from_id)}, got.number);
}

void simulated_cluster::receive(const message& got, const heartbeat_seen& what) {
  if (got.number != 0) return take(got.to, membership::holder_answered{got.number});
  act(got.to, hosts_[got.to].table.answered(got.from_id, what.between, now_ns()));
}

void simulated_cluster::receive(const message& got, const farewell& what) {
  act(got.to, hosts_[got.to].table.left(got.from_id, what.reason, now_ns()));
  if (!network_.is_running(got.from)) network_.disconnect_quietly(got.from, got.to);
}

void simulated_cluster::receive(const message& got, const gossip& what) {
  if (hosts_[got.to].table.find(got.from_id) == nullptr) return;
  if (what.introduces) return take(got.to, membership::news_introduced{got.from_id, what.news, {}});
  act(got.to, hosts_[got.to].table.hear(got.from_id, what.news, now_ns()));
}

}  // namespace troupe::test
