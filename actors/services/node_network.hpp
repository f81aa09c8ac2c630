// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/networks_test.cpp, tests/actors/short_work_test.cpp
#pragma once

#include <functional>
#include <string_view>

#include <caf/fwd.hpp>

#include <troupe/actors/gate/known_peers.hpp>
#include <troupe/actors/rights/policy.hpp>
#include <troupe/actors/support/work_times.hpp>

namespace troupe {

class arriving_tensors;

}  // namespace troupe

namespace troupe::network {

class shared_multiplexer;

}  // namespace troupe::network

namespace troupe::services {

/// The network of a node; false if the node has none. Written before the first actor of the node starts.
struct node_network {
  arriving_tensors* arriving = nullptr;                // null if there is no network
  network::shared_multiplexer* multiplexer = nullptr;  // null if the network is CAF's own, or if there is none
  gate::known_peers peers = {};                        // without a multiplexer only own actors are noted

  explicit operator bool() const noexcept { return arriving != nullptr; }
  /// Runs `run` on this network thread, after its current work, if work of this kind was short lately. False: nothing was done,
  /// and the caller has to send the work to another thread. `send_elsewhere`: called instead of `run` if the thread stays busy
  /// for too long.
  bool run_soon(const support::work_times& times, std::string_view kind, std::function<void()> run,
                std::function<void()> send_elsewhere) const;
};

/// As gate::own_actors::add(), for the network of the system. A system that has another network or none guards nothing.
gate::own_actors::hold guard(caf::actor_system& system, caf::actor_id actor, gate::own_actors::kind what);

}  // namespace troupe::services
