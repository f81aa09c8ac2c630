// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include <troupe/engine/plan.hpp>

namespace troupe::engine {

/// Tells libtorch's current graph task, which runs our private function, about the functions of the plan: what
/// get_current_graph_task_exec_info(), ..._nodes_in_graph() and ..._execution_order() answer, and with the exec info which
/// gradients libtorch's own functions compute.
///   DT-1  answers are those of libtorch's engine for the same pass, except that the private function is in them.
/// `trimmed`: the pass has inputs. `create_graph`: grad mode of the final callbacks.
void publish(const plan& graph, bool trimmed, bool create_graph);

/// Takes from libtorch's current graph task the final callbacks that it has so far.
std::vector<std::function<void()>> take_callbacks();

}  // namespace troupe::engine
