// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/membership.hpp>

#include <algorithm>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/io/middleman.hpp>

#include <troupe/actors/membership/admission.hpp>
#include <troupe/actors/membership/dialer.hpp>
#include <troupe/actors/membership/membership_core.hpp>
#include <troupe/actors/membership/seeds.hpp>
#include <troupe/actors/support/broker_mailbox.hpp>

namespace troupe::membership {

namespace {

using std::chrono::nanoseconds;

constexpr std::int64_t longest_ns = 1'000'000'000'000'000'000;  // 31 years: no sum of times overflows

template <class Self>
caf::result<contracts::peer_up> find(Self self, const std::string& name, node_id id, std::int64_t left_ns) {
  auto& st = self->state;
  if (st.leaving) return stopping_error(st);
  if (name == st.table.self().name || id == st.table.self().id) return contracts::peer_up{st.table.self(), st.options.gateway};
  if (const auto* peer = name.empty() ? st.table.find_up(id) : st.table.find_up(name))
    return contracts::peer_up{peer->who, peer->gateway, false, peer->period};
  auto promise = self->template make_response_promise<contracts::peer_up>();
  left_ns = std::clamp<std::int64_t>(left_ns, 0, longest_ns);
  const auto search = st.searches.insert(st.searches.end(), {name, id, st.options.clock() + left_ns, 0, promise});
  // The timer is erased with the search, so `search` is valid when the timer fires.
  search->timer = after(self, nanoseconds(left_ns), [=] {
    auto& here = self->state;
    const auto wanted = search->name.empty() ? to_string(search->id) : search->name;
    const auto obstacle = here.table.obstacle_to(search->name, search->id);
    search->promise.deliver(make_error(errc::unknown_peer, "no peer '" + wanted + "' became known within " +
                                                             milliseconds_text(left_ns) + "; " +
                                                             (obstacle.empty() ? "up are: " + here.table.names() : obstacle)));
    here.searches.erase(search);
  });
  look_for(self, *search);
  return promise;
}

template <class Self>
caf::result<caf::unit_t> leave(Self self, const std::string& reason) {
  auto& st = self->state;
  if (std::exchange(st.leaving, true)) return caf::unit;
  for (auto& search : std::exchange(st.searches, {})) {
    st.timers.erase(search.timer);
    search.promise.deliver(stopping_error(st));
  }
  for (const auto& task : std::exchange(st.joins, {}))
    if (task->promise.pending()) task->promise.deliver(stopping_error(st));
  if (st.starting.promise.pending()) st.starting.promise.deliver(stopping_error(st));
  for (const auto& greeting : std::exchange(st.until_listening, {})) greeting();
  auto promise = self->template make_response_promise<caf::unit_t>();
  auto open = std::make_shared<std::size_t>(st.table.peers().size());
  if (*open == 0) promise.deliver(caf::unit);
  const std::function<void()> heard = [=]() mutable {
    if (--*open == 0) promise.deliver(caf::unit);
  };
  for (const auto& [id, peer] : st.table.peers()) {
    self->demonitor(peer.gateway->address());
    self->request(caf::actor_cast<caf::actor>(peer.gateway), st.options.heartbeat, farewell{st.table.self().id, reason})
      .then([=] { heard(); }, [=](const caf::error&) { heard(); });
  }
  return promise;
}

template <class Self>
void beat(Self self) {
  auto& st = self->state;
  if (st.leaving) return;
  const auto hears = [&](const known_peer& peer) {
    return st.options.has_heard(peer.gateway->node(), 2 * st.options.heartbeat);
  };
  act(self, st.table.beat(st.options.clock(), hears, st.options.shares));
  dial_seeds(self);
  after(self, st.options.heartbeat, [=] { beat(self); });
}

template <class Self>
void lost(Self self, const caf::down_msg& down) {
  auto& st = self->state;
  std::vector<std::function<void()>> unanswered;
  std::erase_if(st.greetings, [&](const auto& each) {
    const bool is_lost = each.second.gateway == down.source;
    if (is_lost) unanswered.push_back(each.second.on_lost);
    return is_lost;
  });
  for (const auto& on_lost : unanswered) on_lost();  // ends a dial of the peer, before the table begins the next one
  if (const auto* peer = st.table.find_gateway(down.source)) {
    const auto id = peer->who.id;
    const bool is_lost = down.reason == caf::exit_reason::remote_link_unreachable;
    act(self,
        is_lost ? st.table.connection_lost(id, st.options.clock()) : st.table.left(id, "its node stopped", st.options.clock()));
  }
  std::erase_if(st.subscribers, [&](const caf::actor& subscriber) { return subscriber.address() == down.source; });
}

}  // namespace

template <class Self>
contracts::membership_host::behavior_type make_membership(Self self, const membership_options& options) {
  support::close_mailbox_at_exit(self);
  auto& st = self->state;
  st.table = member_table{options.self, {options.heartbeat, options.forget_after}};
  st.options = options;
  if (!st.options.clock) st.options.clock = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
  if (!st.options.has_heard)
    st.options.has_heard = [self](const caf::node_id& from, nanoseconds lately) {
      return has_heard(self->system(), from, lately);
    };
  if (!st.options.route_to) st.options.route_to = [self](const caf::node_id& other) { return route_to(self->system(), other); };
  if (!st.options.connector) {
    const auto dialer = spawn_dialer(self->system());
    self->link_to(dialer);
    st.options.connector = caf::actor_cast<caf::actor>(dialer);
    if (st.options.guard) st.dialer_guard = st.options.guard(dialer.id());
  }
  self->set_down_handler([self](caf::down_msg& down) { lost(self, down); });
  after(self, st.options.heartbeat, [self] { beat(self); });
  const auto when_listening = [self](std::function<void()> run) {
    if (self->state.options.gateway == nullptr && !self->state.leaving)
      self->state.until_listening.push_back(std::move(run));
    else
      run();
  };
  return {
    [=](support::join_atom, const std::string& host, std::uint16_t port, std::int64_t left_ns) -> caf::result<member> {
      auto& here = self->state;
      if (here.leaving) return stopping_error(here);
      const auto now = here.options.clock();
      auto task = std::make_shared<join_task>();
      task->promise = self->template make_response_promise<member>();
      task->deadline_ns = now + std::clamp<std::int64_t>(left_ns, 1, longest_ns);
      here.joins.insert(task);
      when_listening([=] { join(self, task, host, port); });
      return task->promise;
    },
    [=](support::join_atom, const std::vector<std::string>& seeds, std::int64_t wait_ns) -> caf::result<member> {
      auto promise = self->template make_response_promise<member>();
      when_listening([=] { join_seeds(self, seeds, nanoseconds(std::clamp<std::int64_t>(wait_ns, 0, longest_ns)), promise); });
      return promise;
    },
    [=](support::find_atom, const std::string& name, std::int64_t left_ns) { return find(self, name, {}, left_ns); },
    [=](support::find_atom, node_id id, std::int64_t left_ns) { return find(self, {}, id, left_ns); },
    [=](support::list_atom) { return self->state.table.members(); },
    [=](const hello& from, const caf::strong_actor_ptr& gateway) -> caf::result<welcome> {
      auto promise = self->template make_response_promise<welcome>();
      when_listening([=] { greet(self, from, gateway, promise); });
      return promise;
    },
    [=](const heartbeat& from) -> caf::result<heartbeat_seen> {
      auto& here = self->state;
      if (here.leaving) return stopping_error(here);
      act(self, here.table.heard(from.from, from.between, here.options.clock()));
      if (const auto* peer = here.table.find(from.from))
        return heartbeat_seen{here.table.self().id, from.sent_ns, here.options.clock(), peer->between};
      if (const auto* reason = here.table.gone(from.from))
        return make_error(errc::refused,
                          "node '" + here.table.self().name + "' holds node " + to_string(from.from) + " for gone: " + *reason);
      return make_error(errc::unknown_peer,
                        "node '" + here.table.self().name + "' was not greeted by node " + to_string(from.from));
    },
    [=](const farewell& from) {
      auto& here = self->state;
      act(self, here.table.left(from.from, "left: " + from.reason, here.options.clock()));
    },
    [=](const gossip& news) { hear(self, news); },
    [=](support::subscribe_atom, const caf::actor& subscriber) {
      auto& here = self->state;
      self->monitor(subscriber);
      here.subscribers.push_back(subscriber);
      for (const auto& who : here.table.members())
        if (const auto* peer = here.table.find(who.id))
          caf::anon_send(subscriber, contracts::peer_up{who, peer->gateway, false, peer->period});
        else
          caf::anon_send(subscriber, contracts::member_heard{who, true, {}});
    },
    [=](support::leave_atom, const std::string& reason) { return leave(self, reason); },
    [=](support::clock_atom, node_id of) -> caf::result<std::int64_t> {
      auto& here = self->state;
      if (of == here.table.self().id) return std::int64_t{0};
      if (const auto* peer = here.table.find_up(of)) return peer->clock.offset_ns();
      return make_error(errc::unknown_peer, "no peer has the id " + to_string(of) + "; up are: " + here.table.names());
    },
    [=](support::listen_atom, const caf::strong_actor_ptr& gateway, std::uint16_t port) {
      auto& here = self->state;
      here.options.gateway = gateway;
      here.table.set_port(port);
      for (const auto& run : std::exchange(here.until_listening, {})) run();
    },
    [=](support::tick_atom, std::uint64_t number) {
      if (auto due = self->state.timers.extract(number)) due.mapped()();
    },
  };
}

template contracts::membership_host::behavior_type make_membership(
  contracts::membership_host::stateful_pointer<membership_state>, const membership_options&);
template contracts::membership_host::behavior_type make_membership(
  contracts::membership_host::stateful_broker_pointer<membership_state>, const membership_options&);

contracts::membership_host spawn_membership(caf::actor_system& system, const membership_options& options) {
  if (system.has_middleman())
    return system.middleman().spawn_broker(
      make_membership<contracts::membership_host::stateful_broker_pointer<membership_state>>, options);
  return system.spawn(make_membership<contracts::membership_host::stateful_pointer<membership_state>>, options);
}

}  // namespace troupe::membership
