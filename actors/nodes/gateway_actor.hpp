// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/nodes/gateway_actor_test.cpp, tests/actors/orderings_test.cpp, tests/actors/distributed_tensors_test.cpp
#pragma once

#include <troupe/actors/contracts/gateway.hpp>

namespace troupe::nodes {

struct node_services;

/// Spawns the node's `gateway` actor: a broker in the network threads. `membership`: null if the node runs on an actor system
/// of the caller.
contracts::gateway_actor spawn_gateway(node_services& services, const contracts::membership_actor& membership);

}  // namespace troupe::nodes
