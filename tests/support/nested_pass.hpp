// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <troupe/engine/backward.hpp>

namespace troupe::test {

/// A function whose backward runs a pass with the same workers, if any, over functions of this kind, to a depth.
/// `Value::of(x, next)` makes the value of that pass out of `x`; `next(y)` applies the function to a tensor.
template <class Value>
struct nested_pass final : torch::autograd::Function<nested_pass<Value>> {
  static at::Tensor on(const at::Tensor& x, int64_t depth, engine::cpu_workers* workers) {
    return nested_pass::apply(x, depth, reinterpret_cast<int64_t>(workers));
  }

  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, int64_t depth, int64_t workers) {
    context->saved_data["depth"] = depth;
    context->saved_data["workers"] = workers;
    return x * 2;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto depth = context->saved_data["depth"].toInt();
    auto* const workers = reinterpret_cast<engine::cpu_workers*>(context->saved_data["workers"].toInt());
    if (depth == 0) return {gradients[0] * 2, at::Tensor(), at::Tensor()};
    const c10::AutoGradMode recording(true);
    const auto x = gradients[0].detach().requires_grad_();
    const auto value = Value::of(x, [&](const at::Tensor& y) { return on(y, depth - 1, workers); });
    return {troupe::grad({value.sum()}, {x}, {}, {.workers = workers})[0], at::Tensor(), at::Tensor()};
  }
};

}  // namespace troupe::test
