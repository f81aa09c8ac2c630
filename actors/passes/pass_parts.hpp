// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/services/uses_test.cpp
#pragma once

#include <troupe/actors/services/uses.hpp>

// What passes use of their node, from a burst up to a context.
namespace troupe::passes {

using burst_parts = uses<with_self, with_directory, with_clock, with_actors, with_gradient_credits, with_pass_workers,
                         with_departures, with_outbox>;
/// Of run_and_return().
using run_parts = burst_parts::and_also<with_counts, with_recorder, with_times>;
/// Of a thread that runs bursts.
using thread_parts = run_parts::and_also<with_running, with_bursts>;
/// Of a graph task, which hands on what its bursts use.
using task_parts = thread_parts::and_also<with_network, with_deadlines, with_garbage>;
/// Of a context, which makes graph tasks.
using context_parts = task_parts::and_also<with_log>;

}  // namespace troupe::passes
