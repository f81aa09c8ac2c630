// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/optimizer_checkpoints_test.cpp, tests/actors/optimizer_test.cpp, tests/actors/peer_rights_test.cpp
#pragma once

namespace troupe::nodes {

struct node_parts;

/// Registers the functions with which an optimizer saves and loads the part of this node ("troupe.optimizer.save",
/// "troupe.optimizer.snapshot", ...). To be called once for each node.
void add_checkpoint_functions(node_parts& here);

}  // namespace troupe::nodes
