// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <torch/csrc/autograd/function.h>

/// Calls the hooks of an autograd function in libtorch's order.
///   HK-1  a hook may add hooks to its function and remove hooks. A removed hook does not run. A hook that is added to a list
///         while the hooks of this list run may have to wait for the next pass.
///   HK-2  a post-hook that the function or an earlier hook has added in this pass runs in this pass. If the function had no
///         post-hooks before, the new post-hooks get no inputs, as in libtorch.
namespace troupe::engine {

/// Calls the tensor pre-hooks, then the hooks of retained gradients. `unreached`, if given: for each input, whether its hooks
/// must not run.
void call_tensor_hooks(torch::autograd::Node& function, torch::autograd::variable_list& inputs,
                       const std::vector<bool>* unreached = nullptr);

void call_pre_hooks(torch::autograd::Node& function, torch::autograd::variable_list& inputs);

void call_post_hooks(torch::autograd::Node& function, torch::autograd::variable_list& outputs,
                     const torch::autograd::variable_list& inputs);

inline bool has_tensor_hooks(torch::autograd::Node& function) {
  return !function.tensor_pre_hooks().empty() || !function.retains_grad_hooks().empty();
}

}  // namespace troupe::engine
