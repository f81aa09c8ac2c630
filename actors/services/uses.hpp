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

/// Declares a part that classes can name. TROUPE_PART(log, const logging::node_log) declares `struct with_log`, which has one
/// member, the reference `log`, and is made of anything that has a member `log`.
#define TROUPE_PART(name, ...)                         \
  struct with_##name {                                 \
    template <class All>                               \
    requires requires(All & all) { all.name; }         \
    explicit with_##name(All& all) : name(all.name) {} \
    __VA_ARGS__& name;                                 \
  }

// nodes/node_parts.hpp declares the parts that only desks of nodes/ use. Any thread may use a part, from the start of the
// node's actors to their end.
TROUPE_PART(options, const settings);
TROUPE_PART(log, const logging::node_log);
TROUPE_PART(self, const services::node_identity);
TROUPE_PART(counts, support::activity);
TROUPE_PART(directory, membership::peer_directory);
TROUPE_PART(maps, const services::device_maps);
TROUPE_PART(recorder, const tracing::trace_recorder);
TROUPE_PART(clock, services::message_clock);
TROUPE_PART(network, const services::node_network);
TROUPE_PART(actors, const services::node_actors);
TROUPE_PART(deadlines, support::deadline_clock);
TROUPE_PART(times, support::work_times);
TROUPE_PART(gradient_credits, contracts::send_credits);  // bytes of gradients that are under way to other nodes (GW-14)
TROUPE_PART(running, services::running_work);            // the work of calls and bursts that runs now
TROUPE_PART(is_ending, const std::atomic<bool>);         // if true, calls that have not begun are refused
TROUPE_PART(bursts, services::burst_threads);
TROUPE_PART(pass_workers, std::atomic<engine::cpu_workers*>);  // for large functions; null: they run on the threads of bursts
TROUPE_PART(departures, std::optional<services::departures>);
TROUPE_PART(outbox, services::outbox);
TROUPE_PART(garbage, services::garbage);

/// The parts of a node that a class or function uses: `uses<with_log, with_clock>` has the references `log` and `clock`. A
/// `uses` is made of node_parts, or of a `uses` that has all these parts; anything else does not compile. A `uses` is small:
/// copy it into an object or lambda that outlives the call.
template <class... Parts>
struct uses : Parts... {
  template <class All>
  requires(std::constructible_from<Parts, All&>&&...) uses(All& all) : Parts(all)... {}  // NOLINT(google-explicit-constructor)

  /// A `uses` with these parts and more parts.
  template <class... More>
  using and_also = uses<Parts..., More...>;
};

}  // namespace troupe
