// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

namespace troupe::test {

/// A hook that calls `notify` and leaves the gradients as they are.
struct notifying_hook final : torch::autograd::FunctionPreHook {
  explicit notifying_hook(std::function<void()> notify) : notify(std::move(notify)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
    notify();
    return gradients;
  }
  std::function<void()> notify;
};

/// Calls `notify` when the function that made `tensor` runs.
inline void watch(const at::Tensor& tensor, std::function<void()> notify) {
  tensor.grad_fn()->add_pre_hook(std::make_unique<notifying_hook>(std::move(notify)));
}

}  // namespace troupe::test
