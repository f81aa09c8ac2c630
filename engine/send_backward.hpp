// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/engine/torch_compat.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::engine {

/// The autograd function for a message on the node that sent its tensors. The function has no inputs in the local graph. Its
/// outputs are the gradients that come back from the peer (graph_task::deliver).
struct send_backward : public torch::autograd::Node {
  send_backward(message_id message, torch::autograd::edge_list next) : Node(std::move(next)), message(message) {}
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;  // the identity
  std::string name() const override { return "troupe::send_backward"; }

  const message_id message;
};

/// Makes the send_backward for those tensors that require grad, one edge each, in order; null if no tensor requires grad.
pointer_to<send_backward> attach_send(message_id message, const std::vector<at::Tensor>& tensors);

}  // namespace troupe::engine
