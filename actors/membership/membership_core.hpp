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

/// Runs `run` in the actor after `delay`. Returns the number of the timer.
template <class Self>
std::uint64_t after(Self self, std::chrono::nanoseconds delay, std::function<void()> run) {
  auto& st = self->state;
  const auto number = ++st.last_timer;
  st.timers.emplace(number, std::move(run));
  self->delayed_anon_send(self, delay, support::tick_atom::value, number);
  return number;
}

/// Removes a peer that is down, and tells the subscribers. Does nothing if the peer was removed before.
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

/// Cuts the connection to a peer that does not answer, and declares the peer down. Messages that wait to leave for the peer are
/// dropped.
template <class Self>
void give_up(Self self, node_id id, const std::string& reason) {
  if (const auto* peer = self->state.table.find(id)) cut_connection(self->system(), peer->gateway->node());
  declare_down(self, id, reason);
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
        // beat() counts missing answers. But a peer that holds this node for gone will never answer again.
        if (problem == errc::refused)
          declare_down(self, to, std::string("it no longer knows this node: ") + to_exception(problem).what());
      });
}

/// Adds a peer that is up. Tells the subscribers, and answers the requests that searched for the peer.
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

/// Another living peer with the name of `who`; null if there is none. If that peer had the address of `who`, then `who` is its
/// restarted node: the old peer is declared down.
template <class Self>
const known_peer* living_rival(Self self, const member& who) {
  auto& st = self->state;
  const auto* rival = st.table.rival(who);
  if (rival == nullptr || who.port == 0 || rival->who.port != who.port || rival->who.host != who.host) return rival;
  declare_down(self, rival->who.id, "replaced by a restarted node at the same address");
  return nullptr;
}

}  // namespace troupe::membership
