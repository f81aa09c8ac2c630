// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/state_test.cpp, tests/engine/nested_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <troupe/engine/torch_compat.hpp>

/// Questions that functions and hooks can ask about the backward pass in which they run. The current pass is the innermost pass
/// of the calling thread.
namespace troupe {

/// Queues a callback that the current pass calls at its end, on the thread that ends the pass. The callback runs under the grad
/// mode of the pass and on the caller's streams, which by then wait for the streams of the pass. Callbacks run in the order in
/// which they were queued. A callback may queue more callbacks. The pass rethrows an exception of a callback. queue_callback()
/// throws c10::Error if no pass runs.
void queue_callback(std::function<void()> callback);

/// Returns the id of the current pass, unique in this process; -1 if no pass runs.
std::int64_t current_pass_id();

/// True if the current pass keeps the saved variables of its functions. True if no pass runs.
bool current_pass_keeps_graph();

/// Returns the functions to which the sources (roots and sends) of the current pass lead; empty if no pass runs. In a pass with
/// inputs, the list may lack functions that are too deep in the graph to lead to an input.
std::vector<torch::autograd::Node*> current_pass_functions();

/// Returns the functions that the current pass runs, or whose inputs it captures, in serial order. The list includes functions
/// that have run already.
std::vector<torch::autograd::Node*> current_pass_order();

/// True if the current pass runs `function` or captures an input of `function`. True if no pass runs.
bool current_pass_executes(const torch::autograd::Node& function);

/// True if the current pass uses output `index` of `function`. A function need not compute an output that is not used.
bool current_pass_needs_output(const torch::autograd::Node& function, std::size_t index);

/// Returns the function that runs now; null if no function runs, for example in a final callback.
engine::node_pointer current_function();

/// True if the current pass and all passes around it run their whole graphs and put the gradients of leaves into `.grad`. This
/// holds if none of these passes has inputs or is distributed. Checkpointing by nested passes of backward() needs such passes.
/// True if no pass runs.
bool is_checkpoint_valid();

}  // namespace troupe
