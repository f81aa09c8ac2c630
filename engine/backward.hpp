// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe {

/// Sums the gradients of the roots into `.grad` of the leaves, as torch::autograd::backward does, on this thread.
/// `gradients`: of the roots, same shapes; empty or undefined means ones, for scalar roots. `inputs`: only these leaves.
void backward(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& gradients = {}, bool keep_graph = false,
              bool create_graph = false, const std::vector<at::Tensor>& inputs = {});

/// The gradients of the roots with respect to `inputs`, as torch::autograd::grad does.
std::vector<at::Tensor> grad(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& inputs,
                             const std::vector<at::Tensor>& gradients = {}, bool keep_graph = false, bool create_graph = false,
                             bool allow_unused = false);

}  // namespace troupe
