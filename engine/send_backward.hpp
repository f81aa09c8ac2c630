// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/messages/ids.hpp>

namespace troupe::engine {

/// The function on the side that sent tensors forward. It has no inputs in the local graph; the gradients that come back from
/// the peer are its outputs (graph_task::deliver).
struct send_backward : public torch::autograd::Node {
  send_backward(message_id message, torch::autograd::edge_list next) : Node(std::move(next)), message(message) {}
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;  // the identity
  std::string name() const override { return "troupe::send_backward"; }

  const message_id message;
};

/// Makes the send for the tensors of `tensors` that require grad (its edges, in order), or null if none does.
std::shared_ptr<send_backward> attach_send(message_id message, const std::vector<at::Tensor>& tensors);

}  // namespace troupe::engine
