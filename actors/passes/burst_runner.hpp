// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/short_work_test.cpp, tests/actors/distributed_pass_test.cpp
#pragma once

#include <troupe/actors/contracts/graph_task.hpp>
#include <troupe/actors/passes/pass_services.hpp>

namespace troupe::passes {

/// Runs the burst on this thread and returns it to `owner`. If the burst was the last of a pass that this node started, the
/// pass is complete when this function returns.
void run_and_return(const run_services& here, contracts::burst_ptr work, const contracts::graph_task_actor& owner);

}  // namespace troupe::passes
