// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/recv_backward.hpp>

#include <utility>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/variable.h>

#include <troupe/engine/describe.hpp>
#include <troupe/engine/graph_task_settings.hpp>
#include <troupe/engine/running_pass.hpp>
#include <troupe/engine/torch_compat.hpp>

namespace troupe::engine {

torch::autograd::variable_list recv_backward::apply(torch::autograd::variable_list&& gradients) {
  const auto out = running_pass::leaves_by();
  // The error has no backtrace, because its text says which call is wrong and what to call instead.
  if (out.to == nullptr)
    throw c10::Error(
      c10::str("troupe::recv_backward of message ", describe(message),
               ": this backward pass is local, but its graph continues on another node. Call backward() of the context ",
               describe(context), " instead"));
  auto unreached = *out.unreached;
  for (std::size_t i = 0; i < unreached.size(); ++i)
    if (gradients[i].defined()) unreached[i] = false;  // a pre-hook of this function has made a gradient
  out.to->emit(*this, std::move(gradients), std::move(unreached), out.more);
  return {};
}

std::vector<at::Tensor> attach_recv(context_id context, message_id message, const std::vector<at::Tensor>& tensors,
                                    const std::vector<bool>& requires_grad, way_back back) {
  TORCH_CHECK(requires_grad.empty() || requires_grad.size() == tensors.size(), "troupe: message ", describe(message), " has ",
              tensors.size(), " tensors, but ", requires_grad.size(), " flags that say whether they require grad");
  std::vector<at::Tensor> attached = tensors;
  pointer_to<recv_backward> function;
  for (std::size_t i = 0; i < requires_grad.size(); ++i) {
    if (!requires_grad[i] || !tensors[i].defined()) continue;
    TORCH_CHECK(torch::autograd::isDifferentiableType(tensors[i].scalar_type()), "troupe: tensor ", i, " of message ",
                describe(message), " should require grad, but its dtype is ", tensors[i].scalar_type(),
                "; only floating point and complex tensors can");
    if (!function) function = make_node<recv_backward>(context, message, back);
    attached[i] = tensors[i].detach();
    torch::autograd::create_gradient_edge(attached[i], function);
  }
  return attached;
}

}  // namespace troupe::engine
