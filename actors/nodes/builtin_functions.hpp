// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/remote_module_test.cpp, tests/actors/optimizer_test.cpp
#pragma once

namespace troupe::nodes {

struct node_parts;

/// Registers the functions behind remote modules and optimizers ("troupe.create", "troupe.method", "troupe.optimizer.step",
/// ...). To be called once for each node.
void add_builtin_functions(node_parts& here);

}  // namespace troupe::nodes
