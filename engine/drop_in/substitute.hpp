// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/engine/torch_compat.hpp>

namespace torch::autograd {
struct Engine;
}

namespace troupe::engine {

/// What libtorch's Engine::execute is asked to do.
struct pass_request {
  const torch::autograd::edge_list& roots;
  const torch::autograd::variable_list& gradients;  // of the roots
  bool keep_graph;
  bool create_graph;
  bool accumulate_grad;
  const torch::autograd::edge_list& inputs;
};

/// Runs a request on libtorch's engine.
using libtorch_pass = torch::autograd::variable_list (*)(torch::autograd::Engine&, const pass_request&);

/// Runs a pass on troupe's engine, inside one of libtorch's that consists of a single private function.
///   SU-1  everything that libtorch keeps by thread is what it would be: current graph task, exec info, functions in the graph,
///         keep graph, final callbacks, checkpoint validity, thread-local state, warnings, depth of nested passes, and with it
///         the thread: that of libtorch's pool where it would go on there. Passes of troupe's own API are nested in it as in
///         any other.
///   SU-2  what a function throws comes out as it is, also what is no std::exception.
///   SU-3  a pass that troupe's engine does not take goes to libtorch's own, before anything of it has run: one with functions
///         on an accelerator, one in anomaly mode, one that libtorch refuses, one that compiled autograd replaces, one of a
///         single function.
torch::autograd::variable_list run_substituted(torch::autograd::Engine& engine, libtorch_pass libtorch,
                                               const pass_request& request);

/// What libtorch's get_current_node() would answer on its own engine, given what it answers: in a pass of troupe's, the
/// function that runs instead of the private one.
node_pointer current_function(node_pointer libtorchs);

/// Passes so far, of all threads.
struct pass_counts {
  std::uint64_t troupe;    // run on troupe's engine, also those that failed
  std::uint64_t libtorch;  // left to libtorch's
};
pass_counts passes_so_far() noexcept;

}  // namespace troupe::engine
