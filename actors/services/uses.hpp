// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/services/uses_test.cpp
#pragma once

#include <atomic>
#include <concepts>
#include <optional>

namespace troupe {

struct settings;

}  // namespace troupe

namespace troupe::contracts {

class send_credits;

}  // namespace troupe::contracts

namespace troupe::engine {

class cpu_workers;

}  // namespace troupe::engine

namespace troupe::logging {

class node_log;

}  // namespace troupe::logging

namespace troupe::membership {

class peer_directory;

}  // namespace troupe::membership

namespace troupe::support {

class deadline_clock;
class work_times;
struct activity;

}  // namespace troupe::support

namespace troupe::tracing {

class trace_recorder;

}  // namespace troupe::tracing

namespace troupe::services {

class burst_threads;
class departures;
class device_maps;
class garbage;
class message_clock;
class node_identity;
class outbox;
class running_work;
struct node_actors;
struct node_network;

}  // namespace troupe::services

namespace troupe {

/// Declares a service that classes can name. TROUPE_SERVICE(log, const logging::node_log) declares `struct with_log`, which has
/// one member, the reference `log`, and is made of anything that has a member `log`.
#define TROUPE_SERVICE(name, ...)                      \
  struct with_##name {                                 \
    template <class All>                               \
    requires requires(All & all) { all.name; }         \
    explicit with_##name(All& all) : name(all.name) {} \
    __VA_ARGS__& name;                                 \
  }

// nodes/node_services.hpp declares the services that only desks of nodes/ use. Any thread may use a service, from the start of
// the node's actors to their end.
TROUPE_SERVICE(options, const settings);
TROUPE_SERVICE(log, const logging::node_log);
TROUPE_SERVICE(self, const services::node_identity);
TROUPE_SERVICE(counts, support::activity);
TROUPE_SERVICE(directory, membership::peer_directory);
TROUPE_SERVICE(maps, const services::device_maps);
TROUPE_SERVICE(recorder, const tracing::trace_recorder);
TROUPE_SERVICE(clock, services::message_clock);
TROUPE_SERVICE(network, const services::node_network);
TROUPE_SERVICE(actors, const services::node_actors);
TROUPE_SERVICE(deadlines, support::deadline_clock);
TROUPE_SERVICE(times, support::work_times);
TROUPE_SERVICE(gradient_credits, contracts::send_credits);  // bytes of gradients that are under way to other nodes (GW-14)
TROUPE_SERVICE(running, services::running_work);            // the work of calls and bursts that runs now
TROUPE_SERVICE(is_ending, const std::atomic<bool>);         // if true, calls that have not begun are refused
TROUPE_SERVICE(bursts, services::burst_threads);
TROUPE_SERVICE(pass_workers,
               std::atomic<engine::cpu_workers*>);  // for large functions; null: they run on the threads of bursts
TROUPE_SERVICE(departures, std::optional<services::departures>);
TROUPE_SERVICE(outbox, services::outbox);
TROUPE_SERVICE(garbage, services::garbage);

/// The services of a node that a class or function uses: `uses<with_log, with_clock>` has the references `log` and `clock`. A
/// `uses` is made of node_services, or of a `uses` that has all these services; anything else does not compile. A `uses` is
/// small: copy it into an object or lambda that outlives the call.
template <class... Services>
struct uses : Services... {
  template <class All>
  requires(std::constructible_from<Services, All&>&&...) uses(All& all)
      : Services(all)... {}  // NOLINT(google-explicit-constructor)

  /// A `uses` with these services and more services.
  template <class... More>
  using and_also = uses<Services..., More...>;
};

}  // namespace troupe
