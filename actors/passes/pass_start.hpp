// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/orderings_test.cpp, tests/actors/distributed_pass_test.cpp
#pragma once

#include <troupe/actors/contracts/context.hpp>
#include <troupe/actors/contracts/graph_task.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/passes/pass_services.hpp>

namespace troupe::passes {

/// Starts a pass on the calling thread. The first burst has run when start_pass() returns, so no other thread has to wake
/// before the first gradients leave. The context actor starts the pass instead if gradients of earlier passes have to be
/// gathered first, or if this thread runs a continuation of a future. Every error goes to `job.result`.
void start_pass(const context_services& here, const contracts::context_record_ptr& record,
                const contracts::context_actor& owner, const contracts::backward_job_ptr& job);

/// The graph task for a message of a pass that another node started. Makes the graph task if the pass is new on this node. Null
/// if the pass is over on this node. On the node that opened the context only start_pass() begins a pass: null if start_pass()
/// has not begun this pass.
contracts::graph_task_actor join_pass(const context_services& here, const contracts::context_record_ptr& record,
                                      pass_number number, bool keep_graph, bool create_graph);

}  // namespace troupe::passes
