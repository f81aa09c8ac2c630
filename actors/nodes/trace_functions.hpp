// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/profiling_test.cpp
#pragma once

namespace troupe::nodes {

struct node_parts;

/// Registers the functions that return a node's trace ("troupe.trace", "troupe.spans"). To be called once for each node.
void add_trace_functions(node_parts& here);

}  // namespace troupe::nodes
