// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/messages/ids.hpp>
#include <troupe/messages/wire_format.hpp>

namespace troupe::engine {

/// How gradients of received tensors go back to the node that sent the tensors.
struct way_back {
  wire_format format = wire_format::exact;
  std::uint64_t call_key = 0;  // see call_key_of (messages/residual_book.hpp); 0: no error feedback
};

/// The autograd function for a message on the node that received its tensors. In a pass, the function hands its gradients to
/// the outlet of the graph task that runs it (see graph_task_settings.hpp). In a pass without an outlet, the function throws
/// c10::Error: only the backward of a context continues on the node that sent the tensors.
struct recv_backward : public torch::autograd::Node {
  recv_backward(context_id context, message_id message, way_back back = {}) : context(context), message(message), back(back) {}
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;
  std::string name() const override { return "troupe::recv_backward"; }

  const context_id context;
  const message_id message;  // includes the id of the node that sent the tensors
  const way_back back;
};

/// Returns the given tensors; those marked in `requires_grad` are outputs of one new recv_backward. The returned tensors share
/// the storage of the given ones. An undefined tensor stays undefined. Throws c10::Error if the dtype of a marked tensor
/// cannot require grad.
std::vector<at::Tensor> attach_recv(context_id context, message_id message, const std::vector<at::Tensor>& tensors,
                                    const std::vector<bool>& requires_grad, way_back back = {});

}  // namespace troupe::engine
