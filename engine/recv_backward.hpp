// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/messages/ids.hpp>

namespace troupe::engine {

/// The function on the side that received tensors. Run in a pass, it hands the gradients to the outlet of the graph task that
/// runs it (see graph_task_settings.hpp); outside one it throws and says that a context's backward is needed.
struct recv_backward : public torch::autograd::Node {
  recv_backward(context_id context, message_id message) : context(context), message(message) {}
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;
  std::string name() const override { return "troupe::recv_backward"; }

  const context_id context;
  const message_id message;  // names the node that sent the tensors
};

/// Makes the tensors marked in `requires_grad` outputs of one recv_backward. Tensors of a dtype that can't require grad are
/// refused by name. Returns tensors that share the storage of those given. An undefined tensor stays as it is.
std::vector<at::Tensor> attach_recv(context_id context, message_id message, const std::vector<at::Tensor>& tensors,
                                    const std::vector<bool>& requires_grad);

}  // namespace troupe::engine
