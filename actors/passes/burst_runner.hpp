// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/short_work_test.cpp, tests/actors/distributed_pass_test.cpp
#pragma once

#include <troupe/actors/contracts/graph_task.hpp>

#include <troupe/actors/passes/burst.hpp>
#include <troupe/actors/services/uses.hpp>

namespace troupe::passes {

/// What run_and_return() uses of its node.
using run_uses = burst_uses::and_also<with_counts, with_recorder, with_times>;

/// What a thread that runs bursts uses of its node.
using thread_uses = run_uses::and_also<with_running, with_bursts>;

/// Runs the burst on this thread and returns it to `owner`. If the burst was the last of a pass that this node started, the
/// pass is complete when this function returns.
void run_and_return(const run_uses& here, contracts::burst_ptr work, const contracts::graph_task_actor& owner);

}  // namespace troupe::passes
