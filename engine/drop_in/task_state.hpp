// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/drop_in/state_test.cpp
#pragma once

#include <functional>
#include <vector>

#include <troupe/engine/plan.hpp>

namespace troupe::engine {

/// Tells libtorch's current graph task, which runs troupe's private function, about the functions of the plan. libtorch's
/// get_current_graph_task_exec_info(), ..._nodes_in_graph() and ..._execution_order() then tell of these functions. The exec
/// info also decides which gradients libtorch's own functions compute.
///   DT-1  these three functions give the answers of the same pass on libtorch's engine, except that the private function is
///         included.
/// `trimmed`: the pass has inputs. `create_graph`: grad mode of the final callbacks.
void publish(const plan& graph, bool trimmed, bool create_graph);

/// To be called when all functions of the plan have run. Takes the list of functions from libtorch's current graph task, unless
/// the task has final callbacks, which may ask for the list (DT-1).
void withdraw_functions();

/// Removes the exec info of libtorch's current graph task. The task then executes every function.
void publish_nothing(bool create_graph);

/// Removes and returns the final callbacks that libtorch's current graph task has so far.
std::vector<std::function<void()>> take_callbacks();
/// Whether libtorch's current graph task has final callbacks; false if there is no such task.
bool has_libtorch_callbacks();

}  // namespace troupe::engine
