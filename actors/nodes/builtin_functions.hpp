// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe::nodes {

struct node_parts;

/// Registers the functions behind remote modules and optimizers ("troupe.create", "troupe.method", "troupe.optimizer.step",
/// ...). The node calls it once.
void add_builtin_functions(node_parts& here);

}  // namespace troupe::nodes
