// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/orderings_test.cpp, tests/actors/support/shared_life_test.cpp
#pragma once

#include <chrono>

#include <troupe/actors/contracts/graph_task.hpp>
#include <troupe/actors/passes/pass_terms.hpp>
#include <troupe/actors/support/deadline_clock.hpp>

namespace troupe::services {

class node_services;

}  // namespace troupe::services

namespace troupe::passes {

/// Sets the reserved alarm. The alarm tells the graph task that the deadline of the pass has passed.
void set_deadline(services::node_services& here, const contracts::graph_task_actor& task,
                  const support::deadline_clock::alarm& reserved);

/// Spawns the graph task: a broker in the network threads, or an actor on CAF's scheduler if the node has no network.
contracts::graph_task_actor spawn_graph_task(services::node_services& here, pass_terms_ptr terms);

}  // namespace troupe::passes
