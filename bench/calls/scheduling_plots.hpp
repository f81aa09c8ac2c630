// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "../support/curves.hpp"
#include "node_pair.hpp"

namespace troupe::bench {

/// Microseconds of a small call, of `at_once` that are under way at once.
std::vector<double> calls_together(const pair_settings& how, int at_once, int runs);

/// Microseconds until a node answers a question for its status, which travels as a heartbeat does. `loaded`: calls keep the workers of the
/// node busy, and two threads of this process for each core compute.
std::vector<double> times_of_answers(int runs, bool loaded);

/// Plots of the group "scheduling".

/// A question to a scheduled actor of bare CAF and its answer, by the policy of the scheduler and its threads.
plot scheduler_latency(bool quick);
/// Messages between 64 pairs of scheduled actors of bare CAF, by the policy of the scheduler and its threads.
plot scheduler_policies(bool quick);
/// Messages between such pairs, by the messages that an actor handles before another one gets its turn.
plot scheduler_throughput(bool quick);
/// Small calls, 16 at once, by the threads that read messages in the place of the network thread, and by the network.
plot middleman_workers(bool quick);
/// Calls of 1 ms, 8 at once, by the calls that a node runs at once.
plot workers_of_a_node(bool quick);
/// A call by the time of its function: on the network thread, on a thread for calls, and where troupe runs it.
plot who_runs_a_call(bool quick);
/// What heartbeats wait while such calls run.
plot who_waits_for_a_call(bool quick);
/// A question to a node after a pause, with idle and with busy cores, beside bare TCP and bare CAF.
plot wake_up(bool quick);
/// The slow ones among the answers to heartbeats and among the errors of passes, idle and while all cores compute.
plot late_messages(bool quick);
/// The slowest of equal passes by their median, by the number of passes that start together.
plot fairness_by_passes(bool quick);

}  // namespace troupe::bench
