// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/nodes/node_services.hpp>
#include <troupe/messages/arriving_tensors.hpp>

#include "actors/deterministic_system.hpp"

namespace troupe::test {

constexpr std::chrono::seconds patience{10};

/// The services of a node without the node. Messages to the gateway of the node come to `gateway`. `networked`: the services
/// work as in a node with a network: actors with a thread have one, and a thread of the services' own calls `tidy` in place of the network thread.
struct lone_services {
  explicit lone_services(bool networked = false, settings options = named())
      : services(nullptr, std::move(options), [this] { tidy(); }), all(networked) {
    nodes::live_on(services, system, nullptr, networked ? &arriving : nullptr);
    services.actors.gateway = caf::actor_cast<contracts::gateway_actor>(caf::actor_cast<caf::actor>(gateway));
  }
  ~lone_services() {
    run();
    services.deadlines.stop();
    services.directory.clear();
    services.departures.reset();
    services.actors = {&system};
  }
  lone_services(const lone_services&) = delete;
  lone_services& operator=(const lone_services&) = delete;

  static settings named() {
    settings options;
    options.name = "here";
    return options;
  }

  /// Ends an actor of the deterministic scheduler.
  template <class Actor>
  void end(const Actor& actor) {
    gateway->send_exit(actor, caf::exit_reason::user_shutdown);
    run();
  }

  /// Runs the actors of the deterministic scheduler until none of them has anything to do.
  void run() { all.run(); }

  std::function<void()> tidy = [] {};
  nodes::node_services services;  // as in a node, threads of the system's actors use the services until the system has ended
  deterministic_system all;
  caf::actor_system& system = all.system;
  arriving_tensors arriving;
  caf::scoped_actor gateway{system};
};

}  // namespace troupe::test
