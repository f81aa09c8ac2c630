// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/membership.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/typed_broker.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/membership/admission.hpp>
#include <troupe/actors/membership/dialer.hpp>
#include <troupe/actors/membership/member_desk.hpp>
#include <troupe/actors/membership/node_connection.hpp>
#include <troupe/actors/membership/seeds.hpp>
#include <troupe/actors/support/broker_mailbox.hpp>
#include <troupe/messages/registration.hpp>

namespace troupe::membership {

namespace {

using contracts::membership_host;
using std::chrono::nanoseconds;

/// Returns the options, with defaults for the empty ones. Spawns a dialer if there is no connector.
membership_options complete(support::desk_actor self, membership_options options, gate::own_actors::hold& dialer_guard) {
  if (!options.clock) options.clock = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
  if (!options.has_heard)
    options.has_heard = [self](const caf::node_id& from, nanoseconds lately) {
      return has_heard(self->system(), from, lately);
    };
  if (!options.route_to) options.route_to = [self](const caf::node_id& other) { return route_to(self->system(), other); };
  if (options.connector) return options;
  const auto dialer = spawn_dialer(self->system());
  self.get()->link_to(dialer);
  options.connector = caf::actor_cast<caf::actor>(dialer);
  if (options.guard) dialer_guard = options.guard(dialer.id());
  return options;
}

/// The desks of the membership actor.
class membership_desks {
 public:
  membership_desks(support::desk_actor self, const membership_options& options)
      : self_(self),
        options_(complete(self, options, dialer_guard_)),
        members_(self, options_, [this](greeting_event what) { admission_.take(std::move(what)); }),
        admission_(self, options_, members_),
        seeds_(options_, members_, admission_) {
    self.get()->set_down_handler([this](caf::down_msg& down) {
      admission_.lost(down.source);  // ends a dial of the peer, before the table begins the next one
      members_.lost(down);
    });
    members_.after(options_.heartbeat, [this] { beat(); });
  }

  membership_host::behavior_type handlers() {
    return {
      [this](support::join_atom, const std::string& host, std::uint16_t port, std::int64_t left_ns) {
        auto promise = self_->response_promise<member>();
        const auto deadline_ns = members_.now() + std::clamp<std::int64_t>(left_ns, 1, longest_ns);
        when_listening([=, this] { join(host, port, deadline_ns, promise); });
        return promise;
      },
      [this](support::join_atom, const std::vector<std::string>& seeds, std::int64_t wait_ns) {
        auto promise = self_->response_promise<member>();
        when_listening(
          [=, this] { seeds_.join(seeds, nanoseconds(std::clamp<std::int64_t>(wait_ns, 0, longest_ns)), promise); });
        return promise;
      },
      [this](support::find_atom, const std::string& name, std::int64_t left_ns) { return members_.find(name, {}, left_ns); },
      [this](support::find_atom, node_id id, std::int64_t left_ns) { return members_.find({}, id, left_ns); },
      [this](support::list_atom) { return members_.table().members(); },
      [this](const hello& from, const caf::strong_actor_ptr& gateway) {
        auto promise = self_->response_promise<welcome>();
        when_listening([=, this] { admission_.answer(from, gateway, promise); });
        return promise;
      },
      [this](const heartbeat& from) { return members_.answer(from); },
      [this](const farewell& from) { members_.act(members_.table().left(from.from, "left: " + from.reason, members_.now())); },
      [this](const gossip& news) { admission_.hear(news); },
      [this](support::subscribe_atom, const caf::actor& subscriber) { members_.subscribe(subscriber); },
      [this](support::leave_atom, const std::string& reason) { return leave(reason); },
      [this](support::clock_atom, node_id of) { return members_.clock_of(of); },
      [this](support::listen_atom, const caf::strong_actor_ptr& gateway, std::uint16_t port) {
        options_.gateway = gateway;
        members_.table().set_port(port);
        for (const auto& run : std::exchange(until_listening_, {})) run();
      },
      [this](support::tick_atom, std::uint64_t number) { members_.timer_ended(number); },
    };
  }

 private:
  void when_listening(std::function<void()> run) {
    if (options_.gateway == nullptr && !members_.is_leaving())
      until_listening_.push_back(std::move(run));
    else
      run();
  }

  void join(const std::string& host, std::uint16_t port, std::int64_t deadline_ns,
            const caf::typed_response_promise<member>& promise) {
    auto ended = [answer = promise](const join_progress& how) mutable {
      if (how.failure)
        answer.deliver(how.failure);
      else
        answer.deliver(how.first);
    };
    if (members_.is_leaving())
      ended({.failure = stopping_error(members_.table().self())});
    else
      admission_.join({.deadline_ns = deadline_ns}, host, port, {ended});
  }

  void beat() {
    if (members_.is_leaving()) return;
    members_.beat();
    seeds_.dial();
    members_.after(options_.heartbeat, [this] { beat(); });
  }

  caf::result<caf::unit_t> leave(const std::string& reason) {
    if (members_.is_leaving()) return caf::unit;
    auto result = members_.leave(reason);
    admission_.take(node_stopped{});
    seeds_.leave();
    for (const auto& run : std::exchange(until_listening_, {})) run();
    return result;
  }

  support::desk_actor self_;
  gate::own_actors::hold dialer_guard_;  // see membership_options::guard
  membership_options options_;
  member_desk members_;
  admission admission_;
  seeds seeds_;
  std::vector<std::function<void()>> until_listening_;
};

struct membership_state {
  static inline const char* name = "membership";
  std::optional<membership_desks> desks;
};

membership_host::behavior_type run_membership(membership_host::stateful_broker_pointer<membership_state> self,
                                              const membership_options& options) {
  support::close_mailbox_at_exit(self);
  return self->state.desks.emplace(self, options).handlers();
}

}  // namespace

contracts::membership_host spawn_membership(caf::actor_system& system, const membership_options& options) {
  return system.middleman().spawn_broker(run_membership, options);
}

}  // namespace troupe::membership
