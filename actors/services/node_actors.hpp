// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/nodes/node_runtime_test.cpp
#pragma once

#include <caf/fwd.hpp>

#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/contracts/workers.hpp>
#include <troupe/actors/tracing/tracer.hpp>

namespace troupe::services {

/// The actors of a node to which other actors send, and the system on which they live. The thread that makes the actors sets
/// the members, before a message from another node can come.
struct node_actors {
  caf::actor_system* system = nullptr;
  contracts::gateway_actor gateway = {};
  contracts::membership_actor membership = {};  // null if the node has no network
  contracts::cpu_continuation_actor continuation = {};
  tracing::tracer_actor tracer = {};
};

}  // namespace troupe::services
