// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <troupe/engine/torch_compat.hpp>

/// What a function or a hook can ask about the backward pass that it runs in, and ask of it. The answers are about the
/// innermost pass of the calling thread.
namespace troupe {

/// Has the current pass call this at its end, on the thread that ends it, under the pass's grad mode and on the caller's streams,
/// which wait for those of the pass by then. Callbacks run in the
/// order in which they were queued; one may queue more. What one throws, the pass throws. Throws where no pass runs.
void queue_callback(std::function<void()> callback);

/// A number that no other pass of this process has; -1 where none runs.
std::int64_t current_pass_id();

/// Whether the saved variables of the current pass are kept. True where none runs.
bool current_pass_keeps_graph();

/// The functions that the roots of the current pass lead to. With inputs, the walk ends where none can come any more.
std::vector<torch::autograd::Node*> current_pass_functions();

/// The functions that the current pass runs, or whose inputs it captures, in its order. Those that ran already are among them.
std::vector<torch::autograd::Node*> current_pass_order();

/// Whether the current pass runs `function`, or captures an input of it. True where none runs.
bool current_pass_executes(const torch::autograd::Node& function);

/// Whether the current pass has a use for output `index` of `function`. A function may leave out what has none.
bool current_pass_needs_output(const torch::autograd::Node& function, std::size_t index);

/// The function that runs now; null where none does, as in a final callback.
engine::node_pointer current_function();

/// Whether the current pass and those around it run all of their graphs: none has inputs. Checkpointing by nested passes of
/// backward() relies on it. True where none runs.
bool is_checkpoint_valid();

}  // namespace troupe
