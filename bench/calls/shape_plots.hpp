// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../support/curves.hpp"

namespace troupe::bench {

/// Plots of the group "shape".

/// Passes over processes whose functions do nothing: what the messages of a shape cost.
plot shapes_without_work(bool quick);
/// Passes over processes, each with functions of 5 ms (weak scaling).
plot shapes_at_work(bool quick);
/// Passes over nodes of one process whose functions do nothing.
plot shapes_in_a_process(bool quick);
/// A wait of 120 ms, spread over processes by a parameter server (strong scaling).
plot work_spread_over_processes(bool quick);
/// Forward and backward over a chain of nodes of one process, by node.
plot nodes_of_a_process(bool quick);
/// A pipeline by its micro-batches, beside the formula of its bubbles.
plot bubbles_by_micro_batches(bool quick);

}  // namespace troupe::bench
