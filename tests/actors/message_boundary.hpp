// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <torch/csrc/autograd/custom_function.h>

namespace troupe::test {

using tensors = std::vector<at::Tensor>;

inline tensors cross(const tensors& from);

/// What a message between nodes is in one process: all that requires grad comes out of one function, as it went in. So do its
/// gradients, where they have a graph.
struct boundary : torch::autograd::Function<boundary> {
  static tensors forward(torch::autograd::AutogradContext* context, at::TensorList inputs) {
    context->set_materialize_grads(false);
    tensors result;
    for (const auto& each : inputs) result.push_back(each.clone());
    return result;
  }
  static tensors backward(torch::autograd::AutogradContext*, tensors gradients) {
    for (auto& each : gradients)
      if (each.defined() && !each.is_non_overlapping_and_dense()) each = each.contiguous();
    return cross(gradients);
  }
};

/// Tensors as they are after they have travelled.
inline tensors cross(const tensors& from) {
  tensors with_grad;
  for (const auto& each : from)
    if (each.defined() && each.requires_grad()) with_grad.push_back(each);
  auto result = from;
  if (with_grad.empty()) return result;
  const auto crossed = boundary::apply(at::TensorList(with_grad));  // a vector would pass as no tensor
  for (std::size_t i = 0, next = 0; i < from.size(); ++i)
    if (from[i].defined() && from[i].requires_grad()) result[i] = crossed[next++];
  return result;
}

}  // namespace troupe::test
