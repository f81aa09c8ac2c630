// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

namespace troupe::engine {

/// Where the gradients of the roots start. Throws c10::Error that names the root which does not require grad.
torch::autograd::edge_list root_edges(const std::vector<at::Tensor>& roots);

/// One gradient a root: those given, and ones for scalar roots where none is (an empty list or an undefined tensor).
torch::autograd::variable_list root_gradients(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& gradients);

}  // namespace troupe::engine
