// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/remote_module_test.cpp, tests/actors/optimizer_test.cpp
#pragma once

namespace troupe::nodes {

struct node_parts;

// Each of these is to be called once for each node.

/// Registers the functions behind remote modules and optimizers ("troupe.create", "troupe.method", "troupe.optimizer.step", ...).
void add_builtin_functions(node_parts& here);
/// Registers the functions with which an optimizer saves and loads the part of this node ("troupe.optimizer.save",
/// "troupe.optimizer.snapshot", ...).
void add_checkpoint_functions(node_parts& here);
/// Registers the functions that return a node's trace ("troupe.trace", "troupe.spans").
void add_trace_functions(node_parts& here);

}  // namespace troupe::nodes
