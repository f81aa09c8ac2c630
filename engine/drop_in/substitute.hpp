// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/drop_in/errors_test.cpp, tests/engine/drop_in/nested_test.cpp, tests/engine/drop_in/state_test.cpp
#pragma once

#include <array>
#include <cstdint>

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/engine/torch_compat.hpp>

namespace torch::autograd {
struct Engine;
}

namespace troupe::engine {

/// The arguments of libtorch's Engine::execute.
struct pass_request {
  const torch::autograd::edge_list& roots;
  const torch::autograd::variable_list& gradients;  // one per root
  bool keep_graph;
  bool create_graph;
  bool accumulate_grad;
  const torch::autograd::edge_list& inputs;
};

/// A function that runs a request on libtorch's engine.
using libtorch_pass = torch::autograd::variable_list (*)(torch::autograd::Engine&, const pass_request&);

/// Runs a pass on troupe's engine, inside a pass of libtorch's engine that has one private function. Where libtorch would
/// continue a nested pass on a thread of its pool, that thread runs the pass.
///   SU-1  libtorch's state of each thread is as in a pass of libtorch's own engine: graph task, exec info, functions in the
///         graph, keep graph, final callbacks, checkpoint validity, thread-local state, warnings, depth of nested passes.
///         Functions run on the same threads too. Passes of troupe's API may nest in such a pass.
///   SU-2  exceptions come out unchanged, also those that are no std::exception.
///   SU-3  these passes go to libtorch's engine before any function has run: a pass with functions on a device that is neither
///         a CPU nor the process's accelerator, a pass in anomaly mode, a pass that libtorch refuses, a pass that compiled
///         autograd replaces, and a pass of a single function.
torch::autograd::variable_list run_substituted(torch::autograd::Engine& engine, libtorch_pass libtorch,
                                               const pass_request& request);

/// Returns the function that runs now. `libtorchs`: the result of libtorch's get_current_node(). In a pass of troupe's engine,
/// `libtorchs` is the private function, and the result is the function that troupe's engine runs (null if none). Otherwise the
/// result is `libtorchs`.
node_pointer current_function(node_pointer libtorchs);

/// Returns the sums to which the running function may add in place (GT-13), one for each of its edges. `libtorchs` is as for
/// current_function(). Outside a pass of troupe's engine, the result is `libtorchs_buffers`, the answer of libtorch. From then
/// on until the function ends, it can run no nested pass: run_substituted() throws, as libtorch's engine does.
torch::autograd::variable_list gradient_buffers(const node_pointer& libtorchs,
                                                torch::autograd::variable_list libtorchs_buffers);

/// Why a pass is left to libtorch's engine.
enum class left_because { refused, anomaly_mode, single_function, other_device, compiled_autograd };
constexpr std::size_t left_because_count = 5;

/// The number of passes so far, on all threads.
struct pass_counts {
  std::uint64_t troupe;                                   // run on troupe's engine, failed ones included
  std::uint64_t libtorch;                                 // left to libtorch's engine
  std::array<std::uint64_t, left_because_count> because;  // the same by left_because
};
pass_counts passes_so_far() noexcept;

/// Counts a pass that the caller leaves to libtorch's engine.
void count_left(left_because reason);

/// From this call on, count_left() also calls `listener`, on the thread of the pass. Null: no listener.
void listen_to_left(void (*listener)(left_because)) noexcept;

}  // namespace troupe::engine
