// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include <caf/actor_cast.hpp>
#include <caf/io/typed_broker.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/membership/membership_state.hpp>
#include <troupe/actors/membership/node_connection.hpp>
#include <troupe/messages/caf_error.hpp>

/// What the parts of the membership actor share, for any host. Not for other actors.
namespace troupe::membership {

inline caf::error stopping_error(const membership_state& st) {
  return make_error(errc::stopping, "node '" + st.table.self().name + "' is stopping");
}

/// Runs `run` in the actor after `delay`. Returns the number of the timer.
template <class Self>
std::uint64_t after(Self self, std::chrono::nanoseconds delay, std::function<void()> run) {
  auto& st = self->state;
  const auto number = ++st.last_timer;
  st.timers.emplace(number, std::move(run));
  self->delayed_anon_send(self, delay, support::tick_atom::value, number);
  return number;
}

template <class Self>
void act(Self self, const member_steps& steps);

/// Connects to the member that somebody looks for, if it is known.
template <class Self>
void look_for(Self self, const membership_state::search& wanted) {
  auto& st = self->state;
  const auto now = st.options.clock();
  act(self,
      wanted.name.empty() ? st.table.want(wanted.id, wanted.until_ns, now) : st.table.want(wanted.name, wanted.until_ns, now));
}

/// Connects to a node that was a peer before, or that other nodes have named, and greets it.
template <class Self>
void dial_again(Self self, const member& who);

/// Greets a peer over the connection that stands.
template <class Self>
void greet_again(Self self, node_id who);

/// News wait for this part of a heartbeat's interval before they are passed on, so that a message carries more than one of them.
inline constexpr int parts_of_interval = 8;

/// The news for the node at the other end of the route: this node's own address is the one by which that node reaches it, and
/// members that it can't reach are left out. The log names these.
template <class Self>
std::vector<member_news> news_for(Self self, std::vector<member_news> all, const std::optional<route>& to) {
  auto& st = self->state;
  for (auto& each : all)
    if (each.who.id == st.table.self().id) each.who.host = host_to_tell(each.who.host, to);
  const auto left_out = take_unreachable(all, to);
  if (!to) return all;
  for (const auto& each : left_out)
    st.options.log.warn("membership", [&] {
      return "the node at " + to->other + " is not told of node " + describe(each.who) +
             ": they can't meet, because that address is loopback; start node '" + each.who.name +
             "' with --host or --advertise";
    });
  return all;
}

/// Tells a peer the news.
template <class Self>
void pass_on(Self self, node_id to, std::vector<member_news> news, bool introduces) {
  auto& st = self->state;
  const auto* peer = st.table.find(to);
  if (peer == nullptr) return;
  news = news_for(self, std::move(news), st.options.route_to(peer->gateway->node()));
  if (news.empty()) return;
  caf::anon_send(caf::actor_cast<caf::actor>(peer->gateway), gossip{st.table.self().id, std::move(news), introduces});
}

/// Sends a heartbeat to the peer and takes in its answer.
template <class Self>
void send_heartbeat(Self self, node_id to) {
  auto& st = self->state;
  const auto* peer = st.table.find(to);
  if (peer == nullptr) return;
  const auto gateway = caf::actor_cast<caf::actor>(peer->gateway);
  // If the answers of a peer are late, an old answer counts too: patience is longer then.
  const bool late = peer->missed >= member_table::allowed_misses;
  const auto patience = st.options.heartbeat * (late ? member_table::most_misses : member_table::allowed_misses);
  const auto sent_ns = st.options.clock();
  self->request(gateway, patience, heartbeat{st.table.self().id, sent_ns, peer->between})
    .then(
      [=](const heartbeat_seen& seen) {
        auto& here = self->state;
        if (here.table.find(to) == nullptr || seen.from != to) return;
        const auto now = here.options.clock();
        here.table.find(to)->clock.add(sent_ns, seen.answered_ns, now);
        act(self, here.table.answered(to, seen.between, now));
      },
      [=](const caf::error& problem) {
        // beat() counts missing answers. But a node that does not know this node will never answer a heartbeat.
        if (problem == errc::refused || problem == errc::unknown_peer) greet_again(self, to);
      });
}

/// Ends the searches for this very node. Searches by name go on: another node may take the name.
template <class Self>
void fail_searches(Self self, const member& who, const std::string& reason) {
  auto& st = self->state;
  for (auto i = st.searches.begin(); i != st.searches.end();) {
    if (i->id != who.id) {
      ++i;
      continue;
    }
    st.timers.erase(i->timer);
    i->promise.deliver(make_error(errc::peer_down, "node '" + who.name + "' went down: " + reason));
    i = st.searches.erase(i);
  }
}

/// Tells the log and the subscribers about a member that this node is not connected to.
template <class Self>
void tell_heard(Self self, const peer_change& news) {
  using kind = peer_change::kind;
  auto& st = self->state;
  const auto line = [&](const std::string& text) { return "node " + describe(news.who) + text; };
  if (news.what == kind::clash) return st.options.log.warn("membership", [&] { return line(" is left out: " + news.reason); });
  const bool is_up = news.what == kind::known;
  if (is_up)
    st.options.log.debug("membership", [&] { return line(" is up, other nodes say"); });
  else
    st.options.log.info("membership", [&] { return line((news.is_gone ? " is gone: " : " is unreachable: ") + news.reason); });
  for (const auto& subscriber : st.subscribers)
    caf::anon_send(subscriber, contracts::member_heard{news.who, is_up, news.reason, news.is_gone});
  if (news.is_gone) fail_searches(self, news.who, news.reason);
  if (!is_up) return;
  for (const auto& search : st.searches)
    if (search.name == news.who.name || search.id == news.who.id) look_for(self, search);
}

/// Lets the actor get one down message when the gateway ends or its connection is lost, however often it is called.
template <class Self>
void watch(Self self, const caf::strong_actor_ptr& gateway) {
  self->demonitor(gateway->address());
  self->monitor(gateway);
}

/// Tells the log and the subscribers about a peer.
template <class Self>
void tell(Self self, const peer_change& news) {
  using kind = peer_change::kind;
  auto& st = self->state;
  if (news.what == kind::known || news.what == kind::lost || news.what == kind::clash) return tell_heard(self, news);
  const auto line = [&](const std::string& text) {
    return "peer '" + news.who.name + "' is " + text + address_text(news.who.host, news.who.port);
  };
  if (news.what == kind::up || news.what == kind::up_again) {
    const bool again = news.what == kind::up_again;
    watch(self, news.gateway);
    st.options.log.info("membership", [&] {
      return line(again ? "up again: " : "up: ") + ", " + transport_to(self->system(), news.gateway->node()) +
             (again ? ", after " + milliseconds_text(news.away_ns) : "");
    });
    for (const auto& subscriber : st.subscribers)
      caf::anon_send(subscriber, contracts::peer_up{news.who, news.gateway, again, news.period});
    return;
  }
  const bool is_gone = news.what == kind::gone;
  if (is_gone) self->demonitor(news.gateway->address());
  if (is_gone) fail_searches(self, news.who, news.reason);
  if (is_gone)
    st.options.log.info("membership", [&] { return line("gone: ") + ", " + news.reason; });
  else
    st.options.log.warn("membership", [&] { return line("unreachable: ") + ", " + news.reason; });
  for (const auto& subscriber : st.subscribers)
    caf::anon_send(subscriber, contracts::peer_down{news.who, news.reason, is_gone, news.period});
}

/// Tells the log and the subscribers about a member that this node can't connect to.
template <class Self>
void tell(Self self, const obstacle& news) {
  auto& st = self->state;
  if (!news.why.empty())
    st.options.log.warn(
      "membership", [&] { return "can't connect to node " + describe(news.who) + ", which other nodes know: " + news.why; });
  for (const auto& subscriber : st.subscribers) caf::anon_send(subscriber, contracts::member_out_of_reach{news.who, news.why});
}

/// Answers the requests that searched for the peer.
template <class Self>
void end_searches(Self self, const member& who, const caf::strong_actor_ptr& gateway, std::uint64_t period) {
  auto& st = self->state;
  for (auto i = st.searches.begin(); i != st.searches.end();) {
    if (i->name != who.name && i->id != who.id) {
      ++i;
      continue;
    }
    st.timers.erase(i->timer);
    i->promise.deliver(contracts::peer_up{who, gateway, false, period});
    i = st.searches.erase(i);
  }
}

/// Does what the table of members has decided.
template <class Self>
void act(Self self, const member_steps& steps) {
  for (const auto& news : steps.changes) {
    tell(self, news);
    if (news.what == peer_change::kind::up || news.what == peer_change::kind::up_again)
      end_searches(self, news.who, news.gateway, news.period);
  }
  for (const auto& each : steps.obstacles) tell(self, each);
  for (const auto& gateway : steps.cuts) cut_connection(self->system(), gateway->node());
  for (const auto id : steps.beats) send_heartbeat(self, id);
  for (const auto id : steps.greets) greet_again(self, id);
  for (const auto& who : steps.dials) dial_again(self, who);
  for (const auto& [to, news] : steps.tells) pass_on(self, to, news, false);
  auto& st = self->state;
  if (steps.passes_on) after(self, st.options.heartbeat / parts_of_interval, [=] { act(self, self->state.table.pass_on()); });
}

/// Another peer with the name of `who`; null if there is none. If `who` is that peer after a restart, the old peer is gone, and
/// the result is null.
template <class Self>
const known_peer* living_rival(Self self, const member& who) {
  auto& st = self->state;
  if (const auto* living = st.table.living_rival(who)) return living;
  if (const auto* old = st.table.rival(who))
    act(self, st.table.left(old->who.id, "replaced by a restarted node at the same address", st.options.clock()));
  return nullptr;
}

/// A member that is no peer and has the name of `who` at another address; null if there is none.
template <class Self>
const member* other_holder(Self self, const member& who) {
  const auto* holder = self->state.table.holder(who);
  return holder == nullptr || (holder->host == who.host && holder->port == who.port) ? nullptr : holder;
}

}  // namespace troupe::membership
