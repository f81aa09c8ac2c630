// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/autograd_test.py
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

namespace troupe::engine {

struct recv_backward;

/// A distributed graph whose edges to other nodes are functions of another library, such as those of PyTorch's distributed
/// autograd (graph_task_settings::of_guest). Used by one thread at a time; with workers, accumulate() is called with
/// graph_task_settings::leaves_mutex held.
///   GU-1  where the graph has a function that stands for a recv, the recv_backward runs in its place: the function's hooks
///         run, its apply() does not.
///   GU-2  the gradients of leaves go to the guest, each as soon as it is complete, and not into graph_task_settings::leaves.
class guest {
 public:
  virtual ~guest() = default;
  /// The recv_backward in whose place the function stands; null for any other function. Pre: the function has no outputs.
  virtual recv_backward* recv_of(const torch::autograd::Node& function) const = 0;
  virtual void accumulate(const at::Tensor& leaf, const at::Tensor& gradient) = 0;
};

/// The recv_backward that the function is, or in whose place it stands (`of`, unless null); null for any other function. Pre:
/// the function has no outputs.
recv_backward* as_recv(torch::autograd::Node& function, const guest* of);

}  // namespace troupe::engine
