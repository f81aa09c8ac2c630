// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <torch/csrc/autograd/custom_function.h>

#include <troupe/messages/repeated_elements.hpp>

namespace troupe::test {

using tensors = std::vector<at::Tensor>;

/// A gradient as the receiver of a message gets it: a repeated element is in memory once (an expanded tensor), the rest is
/// dense.
inline at::Tensor travelled_gradient(const at::Tensor& gradient) {
  std::vector<std::int64_t> shape;
  auto stored = without_repetition(gradient.detach(), shape);
  if (!stored.is_non_overlapping_and_dense()) stored = stored.contiguous();
  return with_repetition(stored, shape);
}

template <bool is_gradient>
tensors cross(const tensors& from);

/// Does in one process what a message between nodes does: all tensors of the message that require grad pass through one
/// function. In backward, all gradients that have a graph pass through one function too.
template <bool is_gradient>
struct boundary : torch::autograd::Function<boundary<is_gradient>> {
  static tensors forward(torch::autograd::AutogradContext* context, at::TensorList inputs) {
    context->set_materialize_grads(false);
    tensors result;
    for (const auto& each : inputs) result.push_back(is_gradient ? travelled_gradient(each) : each.clone());
    return result;
  }
  static tensors backward(torch::autograd::AutogradContext*, tensors gradients) { return cross<true>(gradients); }
};

/// The tensors as the receiver of a message gets them.
template <bool is_gradient = false>
tensors cross(const tensors& from) {
  tensors with_grad;
  for (const auto& each : from)
    if (each.defined() && each.requires_grad()) with_grad.push_back(each);
  auto result = from;
  if constexpr (is_gradient)
    for (auto& each : result)
      if (each.defined() && !each.requires_grad()) each = travelled_gradient(each);
  if (with_grad.empty()) return result;
  const auto crossed = boundary<is_gradient>::apply(at::TensorList(with_grad));  // libtorch finds no tensors in a std::vector
  for (std::size_t i = 0, next = 0; i < from.size(); ++i)
    if (from[i].defined() && from[i].requires_grad()) result[i] = crossed[next++];
  return result;
}

}  // namespace troupe::test
