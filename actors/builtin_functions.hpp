// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe {

class function_table;
class node;
class object_store;

/// Registers the functions behind remote modules and optimizers ("troupe.create", "troupe.method", "troupe.optimizer.step",
/// ...). Called once, by the node.
void add_builtin_functions(node& here);

/// The same without a node.
void add_builtin_functions(function_table& functions, object_store& objects);

}  // namespace troupe
