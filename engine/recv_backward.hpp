// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/messages/ids.hpp>

namespace troupe::engine {

/// The autograd function for a message on the node that received its tensors. In a pass, the function hands its gradients to
/// the outlet of the graph task that runs it (see graph_task_settings.hpp). In a pass without an outlet, the function throws
/// c10::Error: only the backward of a context continues on the node that sent the tensors.
struct recv_backward : public torch::autograd::Node {
  recv_backward(context_id context, message_id message) : context(context), message(message) {}
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;
  std::string name() const override { return "troupe::recv_backward"; }

  const context_id context;
  const message_id message;  // includes the id of the node that sent the tensors
};

/// Returns the given tensors; those marked in `requires_grad` are outputs of one new recv_backward. The returned tensors share
/// the storage of the given ones. An undefined tensor stays undefined. Throws c10::Error if the dtype of a marked tensor
/// cannot require grad.
std::vector<at::Tensor> attach_recv(context_id context, message_id message, const std::vector<at::Tensor>& tensors,
                                    const std::vector<bool>& requires_grad);

}  // namespace troupe::engine
