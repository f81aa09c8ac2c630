// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "../support/curves.hpp"

namespace troupe::bench {

/// Bytes by which the resident memory grows for an idle actor of CAF: one that is scheduled, and one with a thread of its own.
std::vector<double> bytes_of_actor(int count);
/// Bytes by which the resident memory of a process grows for an idle node that has met no other, and for a connection of a node to an
/// idle node of another process, on the node's side.
std::vector<double> bytes_of_node(int count);

/// Plots of the group "memory".

/// The peak of the resident memory of both processes, by the calls of 1 MiB that are under way at once.
plot memory_by_calls(bool quick);
/// The growth of the resident memory of both processes, by the passes that have run, each in a context of its own.
plot memory_by_passes(bool quick);

}  // namespace troupe::bench
