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
#include <troupe/actors/nodes/node_parts.hpp>
#include <troupe/messages/arriving_tensors.hpp>

#include "actors/deterministic_system.hpp"

namespace troupe::test {

constexpr std::chrono::seconds patience{10};

/// The parts of a node without the node. Messages to the gateway of the node come to `gateway`. `networked`: the parts
/// work as in a node with a network: actors with a thread have one, and a thread of the parts' own calls `tidy` in place of the network thread.
struct lone_parts {
  explicit lone_parts(bool networked = false, settings options = named())
      : parts(nullptr, std::move(options), [this] { tidy(); }), all(networked) {
    nodes::live_on(parts, system, nullptr, networked ? &arriving : nullptr);
    parts.actors.gateway = caf::actor_cast<contracts::gateway_actor>(caf::actor_cast<caf::actor>(gateway));
  }
  ~lone_parts() {
    run();
    parts.deadlines.stop();
    parts.directory.clear();
    parts.departures.reset();
    parts.actors = {&system};
  }
  lone_parts(const lone_parts&) = delete;
  lone_parts& operator=(const lone_parts&) = delete;

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
  nodes::node_parts parts;  // as in a node, threads of the system's actors use the parts until the system has ended
  deterministic_system all;
  caf::actor_system& system = all.system;
  arriving_tensors arriving;
  caf::scoped_actor gateway{system};
};

}  // namespace troupe::test
