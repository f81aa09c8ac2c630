// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe::nodes {

struct node_parts;

/// Registers what every node answers about its trace ("troupe.trace", "troupe.spans"). Called once, by the node.
void add_trace_functions(node_parts& here);

}  // namespace troupe::nodes
