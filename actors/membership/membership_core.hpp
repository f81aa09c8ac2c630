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

inline std::string milliseconds_text(std::int64_t ns) { return std::to_string(ns / 1'000'000) + " ms"; }

inline caf::error stopping_error(const membership_state& st) {
  return make_error(errc::stopping, "node '" + st.table.self().name + "' is stopping");
}

/// Runs `run` later, in the actor; returns the timer's number.
template <class Self>
std::uint64_t after(Self self, std::chrono::nanoseconds delay, std::function<void()> run) {
  auto& st = self->state;
  const auto number = ++st.last_timer;
  st.timers.emplace(number, std::move(run));
  self->delayed_anon_send(self, delay, support::tick_atom::value, number);
  return number;
}

/// A peer is down: tells the subscribers, once.
template <class Self>
void declare_down(Self self, node_id id, const std::string& reason) {
  auto& st = self->state;
  auto peer = st.table.remove(id, reason);
  if (!peer) return;
  self->demonitor(peer->gateway->address());
  st.options.log.info("membership", [&] {
    return "peer '" + peer->who.name + "' is down: " + address_text(peer->who.host, peer->who.port) + ", " + reason;
  });
  for (const auto& subscriber : st.subscribers) caf::anon_send(subscriber, contracts::peer_down{peer->who, reason});
}

/// Takes a peer down that does not answer, and cuts its connection. The messages that waited there are dropped.
template <class Self>
void give_up(Self self, node_id id, const std::string& reason) {
  if (const auto* peer = self->state.table.find(id)) cut_connection(self->system(), peer->gateway->node());
  declare_down(self, id, reason);
}

/// Asks the peer for a sign of life.
template <class Self>
void send_heartbeat(Self self, node_id to) {
  auto& st = self->state;
  const auto* peer = st.table.find(to);
  if (peer == nullptr) return;
  const auto gateway = caf::actor_cast<caf::actor>(peer->gateway);
  // From a peer whose answers are late any answer counts.
  const bool late = peer->missed >= member_table::allowed_misses;
  const auto patience = st.options.heartbeat * (late ? member_table::most_misses : member_table::allowed_misses);
  const auto sent_ns = st.options.clock();
  self->request(gateway, patience, heartbeat{st.table.self().id, sent_ns})
    .then(
      [=](const heartbeat_seen& seen) {
        auto* known = self->state.table.find(to);
        if (known == nullptr || seen.from != to) return;
        known->answered = true;
        known->seen_ns = self->state.options.clock();
        known->clock.add(sent_ns, seen.answered_ns, known->seen_ns);
      },
      [=](const caf::error& problem) {
        // beat() counts silence; but a peer that says that we are gone will not talk to us again.
        if (problem == errc::refused)
          declare_down(self, to, std::string("it no longer knows this node: ") + to_exception(problem).what());
      });
}

/// A peer is up: tells the subscribers and the requests that searched for it.
template <class Self>
void admit(Self self, const member& who, const caf::strong_actor_ptr& gateway) {
  auto& st = self->state;
  st.table.add(who, gateway, st.options.clock());
  self->monitor(gateway);
  st.options.log.info("membership", [&] {
    return "peer '" + who.name + "' is up: " + address_text(who.host, who.port) + ", " +
           transport_to(self->system(), gateway->node());
  });
  for (const auto& subscriber : st.subscribers) caf::anon_send(subscriber, contracts::peer_up{who, gateway});
  for (auto i = st.searches.begin(); i != st.searches.end();) {
    if (i->name != who.name && i->id != who.id) {
      ++i;
      continue;
    }
    st.timers.erase(i->timer);
    i->promise.deliver(contracts::peer_up{who, gateway});
    i = st.searches.erase(i);
  }
  send_heartbeat(self, who.id);
}

/// The living peer that holds the name of `who`. A peer at the same address has been replaced by `who`, and is taken down.
template <class Self>
const known_peer* living_rival(Self self, const member& who) {
  auto& st = self->state;
  const auto* rival = st.table.rival(who);
  if (rival == nullptr || who.port == 0 || rival->who.port != who.port || rival->who.host != who.host) return rival;
  declare_down(self, rival->who.id, "replaced by a restarted node at the same address");
  return nullptr;
}

}  // namespace troupe::membership
