// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/joined_message.hpp>

#include <memory>
#include <utility>

#include <caf/send.hpp>

#include <troupe/actors/company.hpp>
#include <troupe/actors/context_actor.hpp>
#include <troupe/actors/peer_actor.hpp>
#include <troupe/engine/recv_backward.hpp>

namespace troupe {

namespace {

autograd_message pack_for(node& node, node_id to, std::vector<at::Tensor> tensors, const std::string& what) {
  auto& here = node.actors();
  auto packed = here.pack(call_scope::context(), std::move(tensors), what);
  packed.arriving.wait();
  packed.payload.place = call_scope::next_place();  // after what leads back was recorded
  if (packed.send) {
    // The context has it before any gradient of the message can come: the message is sent after this.
    auto joint = std::make_shared<outgoing_joint>();
    joint->context = packed.payload.context;
    joint->to = to;
    joint->send.function = std::move(packed.send);
    joint->recordings = {call_scope::recorded()};
    here.add_joint(std::move(joint));
  }
  return std::move(packed.payload);
}

}  // namespace

autograd_message join_graphs(const peer& to, std::vector<at::Tensor> tensors) {
  return pack_for(to.here(), to.id(), std::move(tensors), "a message to an actor on node '" + to.name() + "'");
}

std::vector<at::Tensor> joined_tensors(node& here, autograd_message message) {
  here.actors().witness(message.message.number);
  devices::place(message.tensors, message.devices, "a message's tensor");
  if (!message.context || message.requires_grad.empty()) return std::move(message.tensors);
  return engine::attach_recv(message.context, message.message, message.tensors, message.requires_grad);
}

joined_scope::joined_scope(node& here, autograd_message message)
    : here_(&here),
      from_(message.message.node),
      scope_(message.context, message.place),
      tensors_(joined_tensors(here, std::move(message))) {}

autograd_message joined_scope::reply(std::vector<at::Tensor> tensors) const {
  return pack_for(*here_, from_, std::move(tensors), "an answer of an actor on node '" + here_->name() + "'");
}

}  // namespace troupe
