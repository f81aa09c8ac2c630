// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/member_desk.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <troupe/actors/membership/node_connection.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::membership {

namespace {

using std::chrono::nanoseconds;
using kind = peer_change::kind;

/// Before news are passed on, they wait for a heartbeat's interval divided by this number. Meanwhile more news may come, so one
/// message carries several pieces of news.
constexpr int interval_divisor = 8;

}  // namespace

member_desk::member_desk(support::desk_actor self, const membership_options& options, std::function<void(greeting_event)> greet)
    : self_(self),
      options_(options),
      greet_(std::move(greet)),
      table_(options.self, {options.heartbeat, options.forget_after}) {}

std::vector<member_news> member_desk::news_for(std::vector<member_news> all, const std::optional<route>& to) const {
  for (auto& each : all)
    if (each.who.id == table_.self().id) each.who.host = host_to_tell(each.who.host, to);
  for (const auto& each : take_unreachable(all, to))
    if (to)
      options_.log.warn("membership", [&] {
        return "the node at " + to->other + " is not told of node " + describe(each.who) +
               ": they can't meet, because that address is loopback; start node '" + each.who.name +
               "' with --host or --advertise";
      });
  return all;
}

void member_desk::pass_on(node_id to, std::vector<member_news> news, bool introduces) const {
  const auto* peer = table_.find(to);
  if (peer == nullptr) return;
  news = news_for(std::move(news), options_.route_to(peer->gateway->node()));
  if (news.empty()) return;
  caf::anon_send(caf::actor_cast<caf::actor>(peer->gateway), gossip{table_.self().id, std::move(news), introduces});
}

void member_desk::watch(const caf::strong_actor_ptr& gateway) const {
  self_->demonitor(gateway->address());
  self_->monitor(gateway);
}

std::uint64_t member_desk::after(nanoseconds delay, std::function<void()> run) {
  timers_.emplace(++last_timer_, std::move(run));
  caf::delayed_anon_send(self_->handle<contracts::membership_host>(), delay, support::tick_atom::value, last_timer_);
  return last_timer_;
}

void member_desk::timer_ended(std::uint64_t number) {
  if (const auto due = timers_.extract(number)) due.mapped()();
}

// News.

template <class News>
void member_desk::publish(const News& news) const {
  for (const auto& subscriber : subscribers_) caf::anon_send(subscriber, news);
}

void member_desk::subscribe(const caf::actor& subscriber) {
  self_->monitor(subscriber);
  subscribers_.push_back(subscriber);
  for (const auto& who : table_.members())
    if (const auto* peer = table_.find(who.id))
      caf::anon_send(subscriber, contracts::peer_up{who, peer->gateway, false, peer->period});
    else
      caf::anon_send(subscriber, contracts::member_heard{who, true, {}});
}

/// Tells the log and the subscribers about a member that this node is not connected to.
void member_desk::tell_heard(const peer_change& news) {
  const auto line = [&](const std::string& text) { return "node " + describe(news.who) + text; };
  if (news.what == kind::clash) return options_.log.warn("membership", [&] { return line(" is left out: " + news.reason); });
  const bool is_up = news.what == kind::known;
  if (is_up)
    options_.log.debug("membership", [&] { return line(" is up, other nodes say"); });
  else
    options_.log.info("membership", [&] { return line((news.is_gone ? " is gone: " : " is unreachable: ") + news.reason); });
  publish(contracts::member_heard{news.who, is_up, news.reason, news.is_gone});
  if (news.is_gone) fail_searches(news.who, news.reason);
  if (!is_up) return;
  for (const auto& search : searches_)
    if (search.name == news.who.name || search.id == news.who.id) look_for(search);
}

/// Tells the log and the subscribers about a peer.
void member_desk::tell(const peer_change& news) {
  if (news.what == kind::known || news.what == kind::lost || news.what == kind::clash) return tell_heard(news);
  const auto line = [&](const std::string& text) {
    return "peer '" + news.who.name + "' is " + text + address_text(news.who.host, news.who.port);
  };
  if (news.what == kind::up || news.what == kind::up_again) {
    const bool again = news.what == kind::up_again;
    watch(news.gateway);
    options_.log.info("membership", [&] {
      return line(again ? "up again: " : "up: ") + ", " + transport_to(self_->system(), news.gateway->node()) +
             (again ? ", after " + milliseconds_text(news.away_ns) : "");
    });
    publish(contracts::peer_up{news.who, news.gateway, again, news.period});
    return end_searches([&](const search& each) { return each.name == news.who.name || each.id == news.who.id; },
                        contracts::peer_up{news.who, news.gateway, false, news.period});
  }
  const bool is_gone = news.what == kind::gone;
  if (is_gone) self_->demonitor(news.gateway->address());
  if (is_gone) fail_searches(news.who, news.reason);
  if (is_gone)
    options_.log.info("membership", [&] { return line("gone: ") + ", " + news.reason; });
  else
    options_.log.warn("membership", [&] { return line("unreachable: ") + ", " + news.reason; });
  publish(contracts::peer_down{news.who, news.reason, is_gone, news.period});
}

/// Tells the log and the subscribers about a member that this node can't connect to.
void member_desk::tell(const obstacle& news) const {
  if (!news.why.empty())
    options_.log.warn("membership",
                      [&] { return "can't connect to node " + describe(news.who) + ", which other nodes know: " + news.why; });
  publish(contracts::member_out_of_reach{news.who, news.why});
}

void member_desk::act(const member_steps& steps) {
  for (const auto& news : steps.changes) tell(news);
  for (const auto& each : steps.obstacles) tell(each);
  for (const auto& gateway : steps.cuts) cut_connection(self_->system(), gateway->node());
  for (const auto id : steps.beats) send_heartbeat(id);
  for (const auto id : steps.greets) greet_(greeting_wanted{id});
  for (const auto& who : steps.dials) greet_(dial_wanted{who});
  for (const auto& [to, news] : steps.tells) pass_on(to, news, false);
  if (steps.passes_on) after(options_.heartbeat / interval_divisor, [this] { act(table_.pass_on()); });
}

// Heartbeats.

void member_desk::beat() {
  const auto hears = [&](const known_peer& peer) { return options_.has_heard(peer.gateway->node(), 2 * options_.heartbeat); };
  act(table_.beat(now(), hears, options_.shares));
}

/// Sends a heartbeat to the peer and takes in its answer.
void member_desk::send_heartbeat(node_id to) {
  const auto* peer = table_.find(to);
  if (peer == nullptr) return;
  // If the answers of a peer are late, the deadline is longer, because then an old answer counts too.
  const bool late = peer->signs.missed >= member_table::allowed_misses;
  const auto patience = options_.heartbeat * (late ? member_table::most_misses : member_table::allowed_misses);
  const auto sent_ns = now();
  self_->request(caf::actor_cast<caf::actor>(peer->gateway), patience, heartbeat{table_.self().id, sent_ns, peer->between})
    .then(
      [=, this](const heartbeat_seen& seen) {
        auto* answering = table_.find(to);
        if (answering == nullptr || seen.from != to) return;
        answering->signs.clock.add(sent_ns, seen.answered_ns, now());
        act(table_.answered(to, seen.between, now()));
      },
      [=, this](const caf::error& problem) {
        // beat() counts missing answers. But a node that does not know this node never answers a heartbeat: it is greeted
        // again.
        if (problem == errc::refused || problem == errc::unknown_peer) greet_(greeting_wanted{to});
      });
}

caf::result<heartbeat_seen> member_desk::answer(const heartbeat& from) {
  const auto& own = table_.self();
  if (is_leaving_) return stopping_error(own);
  act(table_.heard(from.from, from.between, now()));
  if (const auto* peer = table_.find(from.from)) return heartbeat_seen{own.id, from.sent_ns, now(), peer->between};
  if (const auto* reason = table_.gone(from.from))
    return make_error(errc::refused, "node '" + own.name + "' holds node " + to_string(from.from) + " for gone: " + *reason);
  return make_error(errc::unknown_peer, "node '" + own.name + "' was not greeted by node " + to_string(from.from));
}

caf::result<std::int64_t> member_desk::clock_of(node_id peer) const {
  if (peer == table_.self().id) return std::int64_t{0};
  if (const auto* found = table_.find_up(peer)) return found->signs.clock.offset_ns();
  return make_error(errc::unknown_peer, "no peer has the id " + to_string(peer) + "; up are: " + table_.names());
}

void member_desk::lost(const caf::down_msg& down) {
  if (const auto* peer = table_.find_gateway(down.source)) {
    const auto id = peer->who.id;
    const bool is_lost = down.reason == caf::exit_reason::remote_link_unreachable;
    act(is_lost ? table_.connection_lost(id, now()) : table_.left(id, "its node stopped", now()));
  }
  std::erase_if(subscribers_, [&](const caf::actor& subscriber) { return subscriber.address() == down.source; });
}

// Searches.

caf::result<contracts::peer_up> member_desk::find(const std::string& name, node_id id, std::int64_t left_ns) {
  const auto& own = table_.self();
  if (is_leaving_) return stopping_error(own);
  if (name == own.name || id == own.id) return contracts::peer_up{own, options_.gateway};
  if (const auto* peer = name.empty() ? table_.find_up(id) : table_.find_up(name))
    return contracts::peer_up{peer->who, peer->gateway, false, peer->period};
  auto promise = self_->response_promise<contracts::peer_up>();
  left_ns = std::clamp<std::int64_t>(left_ns, 0, longest_ns);
  const auto wanted = searches_.insert(searches_.end(), {name, id, now() + left_ns, 0, promise});
  // The timer is erased with the search, so `wanted` is valid when the timer fires.
  wanted->timer = after(nanoseconds(left_ns), [=, this] {
    const auto whom = wanted->name.empty() ? to_string(wanted->id) : wanted->name;
    const auto obstacle = table_.obstacle_to(wanted->name, wanted->id);
    wanted->promise.deliver(make_error(errc::unknown_peer, "no peer '" + whom + "' became known within " +
                                                             milliseconds_text(left_ns) + "; " +
                                                             (obstacle.empty() ? "up are: " + table_.names() : obstacle)));
    searches_.erase(wanted);
  });
  look_for(*wanted);
  return promise;
}

/// Connects to the member that somebody looks for, if it is known.
void member_desk::look_for(const search& wanted) {
  act(wanted.name.empty() ? table_.want(wanted.id, wanted.until_ns, now()) : table_.want(wanted.name, wanted.until_ns, now()));
}

template <class Ends, class Answer>
void member_desk::end_searches(const Ends& is_over, const Answer& answer) {
  std::erase_if(searches_, [&](search& each) {
    if (!is_over(each)) return false;
    timers_.erase(each.timer);
    each.promise.deliver(answer);
    return true;
  });
}

/// Ends the searches for the id of `who`. Searches for its name go on, because another node may take the name.
void member_desk::fail_searches(const member& who, const std::string& reason) {
  end_searches([&](const search& each) { return each.id == who.id; },
               make_error(errc::peer_down, "node '" + who.name + "' went down: " + reason));
}

caf::result<caf::unit_t> member_desk::leave(const std::string& reason) {
  is_leaving_ = true;
  end_searches([](const search&) { return true; }, stopping_error(table_.self()));
  auto promise = self_->response_promise<caf::unit_t>();
  auto open = std::make_shared<std::size_t>(table_.peers().size());
  if (*open == 0) promise.deliver(caf::unit);
  const std::function<void()> heard = [=]() mutable {
    if (--*open == 0) promise.deliver(caf::unit);
  };
  for (const auto& [id, peer] : table_.peers()) {
    self_->demonitor(peer.gateway->address());
    self_->request(caf::actor_cast<caf::actor>(peer.gateway), options_.heartbeat, farewell{table_.self().id, reason})
      .then(heard, [=](const caf::error&) { heard(); });
  }
  return promise;
}

}  // namespace troupe::membership
