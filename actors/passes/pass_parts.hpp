// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/services/uses_test.cpp
#pragma once

#include <troupe/actors/services/uses.hpp>

// The parts of a node that passes use.
namespace troupe::passes {

using burst_parts = uses<with_self, with_directory, with_clock, with_actors, with_gradient_credits, with_pass_workers,
                         with_departures, with_outbox>;
/// The parts for run_and_return().
using run_parts = burst_parts::and_also<with_counts, with_recorder, with_times>;
/// The parts for a thread that runs bursts.
using thread_parts = run_parts::and_also<with_running, with_bursts>;
/// The parts for a graph task and its bursts.
using task_parts = thread_parts::and_also<with_network, with_deadlines, with_garbage>;
/// The parts for a context and its graph tasks.
using context_parts = task_parts::and_also<with_log>;

}  // namespace troupe::passes
