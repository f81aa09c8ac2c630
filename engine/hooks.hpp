// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/csrc/autograd/function.h>

/// Calls the hooks of an autograd function in libtorch's order.
///   HK-1  a hook may add hooks to its function and remove others. One that was removed does not run; one that was added to the
///         list that runs may have to wait for the next pass.
///   HK-2  post-hooks that the function or a hook before it has added in this pass run. If it had none before, they are shown no
///         inputs, as in libtorch.
namespace troupe::engine {

/// Tensor pre-hooks, then the hooks of retained gradients.
void call_tensor_hooks(torch::autograd::Node& function, torch::autograd::variable_list& inputs);

void call_pre_hooks(torch::autograd::Node& function, torch::autograd::variable_list& inputs);

void call_post_hooks(torch::autograd::Node& function, torch::autograd::variable_list& outputs,
                     const torch::autograd::variable_list& inputs);

inline bool has_tensor_hooks(torch::autograd::Node& function) {
  return !function.tensor_pre_hooks().empty() || !function.retains_grad_hooks().empty();
}

}  // namespace troupe::engine
