// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

namespace troupe::engine {

/// Returns the gradient edges of the roots. Throws c10::Error with the index of a root that does not require grad.
torch::autograd::edge_list root_edges(const std::vector<at::Tensor>& roots);

/// Returns one gradient per root: the given gradient, or 1 for a scalar root without a given gradient (an empty list or an
/// undefined tensor).
torch::autograd::variable_list root_gradients(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& gradients);

}  // namespace troupe::engine
