// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "curves.hpp"

namespace troupe::bench {

/// Microseconds of a small call within the machine, of 16 that are under way at once.
std::vector<double> calls_at_once(int runs);

/// Plots of the group "scheduling".

/// Small calls, 16 at once, by the policy of CAF's scheduler and its threads, over troupe's network and over CAF's.
plot scheduler_policies(bool quick);
/// The same, by the messages that an actor handles before another one gets its turn.
plot scheduler_throughput(bool quick);
/// The same, by the threads that read messages in the place of the network thread.
plot middleman_workers(bool quick);
/// A call by the time of its function: on the network thread, on a thread for calls, and where troupe runs it.
plot who_runs_a_call(bool quick);
/// What other messages wait while such calls run.
plot who_waits_for_a_call(bool quick);
/// A question to a node after a pause, with idle and with busy cores, and bare TCP.
plot wake_up(bool quick);
/// The slow ones among the answers to heartbeats and among the errors of passes, idle and while all cores compute.
plot late_messages(bool quick);
/// The slowest of equal passes by their median, by the number of passes that start together.
plot fairness_by_passes(bool quick);

}  // namespace troupe::bench
