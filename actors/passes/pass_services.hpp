// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/services/uses_test.cpp
#pragma once

#include <troupe/actors/services/departures.hpp>  // GCC looks into std::optional<departures>
#include <troupe/actors/services/uses.hpp>

// The services of a node that passes use.
namespace troupe::passes {

using burst_services = uses<with_self, with_directory, with_clock, with_actors, with_gradient_credits, with_pass_workers,
                            with_departures, with_outbox>;
/// The services for run_and_return().
using run_services = burst_services::and_also<with_counts, with_recorder, with_times>;
/// The services for a thread that runs bursts.
using thread_services = run_services::and_also<with_running, with_bursts>;
/// The services for a graph task and its bursts.
using task_services = thread_services::and_also<with_network, with_deadlines, with_garbage>;
/// The services for a context and its graph tasks.
using context_services = task_services::and_also<with_log>;

}  // namespace troupe::passes
