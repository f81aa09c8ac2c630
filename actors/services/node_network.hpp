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

/// The network of a node; converts to false if the node has no network. Written before the first actor of the node starts.
struct node_network {
  arriving_tensors* arriving = nullptr;                // null if there is no network
  network::shared_multiplexer* multiplexer = nullptr;  // null if the network is CAF's own, or if there is none
  gate::known_peers peers = {};                        // without a multiplexer it lists only own actors

  /// Whether short work waits for other short work instead of going to another thread at once: the functions of this node share
  /// the lock of an interpreter. Written before the first function is called.
  bool takes_turns = false;

  explicit operator bool() const noexcept { return arriving != nullptr; }
  /// Makes this network thread call `run` after its current work, if work of this kind was short lately. False: nothing was
  /// done, and the caller has to send the work to another thread. `send_elsewhere`: called instead of `run` if the thread stays
  /// busy for too long. `is_behind`: `run` waits for other short work of this network thread, as with `takes_turns`.
  bool run_soon(const support::work_times& times, std::string_view kind, std::function<void()> run,
                std::function<void()> send_elsewhere, bool is_behind = false) const;
};

/// As gate::own_actors::add(), for an actor of this system. Has no effect if the system has CAF's own network, or none.
gate::own_actors::hold guard(caf::actor_system& system, caf::actor_id actor, gate::own_actors::kind what);

}  // namespace troupe::services
