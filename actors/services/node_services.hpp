// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include <caf/fwd.hpp>

#include <troupe/actors/contracts/send_credits.hpp>
#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/services/burst_threads.hpp>
#include <troupe/actors/services/departures.hpp>
#include <troupe/actors/services/device_maps.hpp>
#include <troupe/actors/services/garbage.hpp>
#include <troupe/actors/services/message_clock.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/node_network.hpp>
#include <troupe/actors/services/outbox.hpp>
#include <troupe/actors/services/running_work.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/activity.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/actors/support/work_times.hpp>
#include <troupe/actors/tracing/tracer.hpp>

namespace troupe::engine {

class cpu_workers;

}  // namespace troupe::engine

namespace troupe::services {

/// What every actor of a node may use. Each part is a class of its own, which any thread may use, from the start of the node's actors to their
/// end.
struct node_services {
  /// `tidy`: see garbage.
  node_services(settings with, std::function<void()> tidy);
  /// Sets the actor system of the node's actors. `multiplexer`: that of the system, null if it is not troupe's.
  /// `arriving`: null if the system has no network. To be called before the first actor starts.
  void live_on(caf::actor_system& system, network::shared_multiplexer* multiplexer, arriving_tensors* arriving);

  const settings options;
  const logging::node_log log;
  node_identity self;
  support::activity counts;
  membership::peer_directory directory;
  const device_maps maps;
  tracing::trace_recorder recorder;
  message_clock clock;
  node_network network;
  node_actors actors;
  support::deadline_clock deadlines;
  support::work_times times;
  contracts::send_credits gradient_credits;  // bytes of gradients that are under way to other nodes (GW-14)
  running_work running;                      // what calls and bursts run here now
  std::atomic<bool> is_ending{false};        // calls that have not begun are refused from now on
  burst_threads bursts;
  // For large functions; null if functions of a pass run on one thread. They outlive the bursts of the node.
  std::atomic<engine::cpu_workers*> pass_workers{nullptr};
  std::optional<services::departures> departures;  // empty until live_on()
  services::outbox outbox{options, self, directory, log, recorder, clock, departures};
  services::garbage garbage;
};

}  // namespace troupe::services
