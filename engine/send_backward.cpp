// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/send_backward.hpp>

#include <utility>

#include <torch/csrc/autograd/variable.h>

namespace troupe::engine {

torch::autograd::variable_list send_backward::apply(torch::autograd::variable_list&& gradients) { return std::move(gradients); }

pointer_to<send_backward> attach_send(message_id message, const std::vector<at::Tensor>& tensors) {
  torch::autograd::edge_list edges;
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined() && tensor.requires_grad()) edges.push_back(torch::autograd::impl::gradient_edge(tensor));
  return edges.empty() ? nullptr : make_node<send_backward>(message, std::move(edges));
}

}  // namespace troupe::engine
