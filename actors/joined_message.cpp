// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/joined_message.hpp>

#include <memory>
#include <optional>
#include <utility>

#include <caf/scoped_actor.hpp>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/contracts/context.hpp>
#include <troupe/actors/node_access.hpp>
#include <troupe/actors/support/inner_time.hpp>
#include <troupe/actors/support/logger_release.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/devices/compressed_tensors.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/engine/recv_backward.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe {

namespace {

autograd_message pack_for(const peer& receiver, std::vector<at::Tensor> tensors, const std::string& what) {
  const nodes::visit inside(link_of(receiver));
  auto& here = inside->services();
  const auto to = receiver.id();
  check_sum_travels(tensors, what);
  const auto map = here.maps.to(receiver.name(), receiver.devices());
  auto mapped_to = map ? here.maps.destinations(*map, tensors, what, receiver.name(), to) : std::vector<c10::Device>();
  auto packed =
    here.outbox.pack(support::call_scope::context(), std::move(tensors), what, to, support::call_scope::format(), false);
  packed.payload.modes =
    support::modes_of_thread(support::call_scope::current_bounds().autocast || here.options.carry_autocast);
  if (map) packed.payload.devices = std::move(mapped_to);
  packed.arriving.wait();
  if (!packed.arriving.events.empty())
    here.outbox.compress(packed.payload.tensors, packed.payload.packings, packed.payload.ahead, to,
                         support::call_scope::format());
  packed.payload.place = support::call_scope::next_place();  // after pack() has recorded the send
  if (packed.send) {
    // The caller sends the message after this function. So the context knows the send before a gradient for the send can come.
    auto joint = std::make_shared<contracts::outgoing_joint>();
    joint->context = packed.payload.context;
    joint->to = to;
    joint->send.function = std::move(packed.send);
    joint->recordings = {support::call_scope::recorded()};
    inside->services().contexts.add(std::move(joint));
  }
  return std::move(packed.payload);
}

/// The node `who` as a peer, even if this node has not heard of it.
peer peer_of(const std::shared_ptr<nodes::node_link>& here, node_id who) {
  return node_access::peer_by(here, nodes::visit(*here)->services().directory.name(who), who);
}

contracts::pass_history_ptr passes_of(const std::shared_ptr<nodes::node_link>& here, const context_id& id) {
  const support::call_scope outside;
  const auto opener = peer_of(here, id.node);
  const auto reply = node_access::ask(opener, requests::passes{id.number}).get();
  return std::make_shared<contracts::pass_history>(calls::history_from(reply.values));
}

/// The tensors of a message, as joined_tensors returns them.
std::vector<at::Tensor> tensors_of(node& here, autograd_message message) {
  services_of(here).clock.witness(message.message.number);
  devices::unpack_to_devices(message.tensors, message.packings, message.devices, "a message's tensor",
                             services_of(here).outbox.memory, {});
  if (!message.context || message.requires_grad.empty()) return std::move(message.tensors);
  engine::way_back back{message.format, 0};
  if (message.format != wire_format::exact) back.call_key = call_key_of({}, 0, message.place, false);
  return engine::attach_recv(message.context, message.message, message.tensors, message.requires_grad, back);
}

/// The bounds (deadline, depth ...) for the work in a joined_scope. They have the autocast flag if the thread or the message
/// has autocast.
support::call_bounds bounds_of(const compute_modes& modes) {
  auto result = support::call_scope::current_bounds();
  result.autocast = result.autocast || !modes.autocast.empty();
  return result;
}

const at::Tensor& checked(const std::vector<at::Tensor>& tensors, std::size_t index) {
  if (index >= tensors.size()) throw support::missing_tensor(index, tensors.size(), "expected a message of");
  return tensors[index];
}

}  // namespace

autograd_message join_graphs(const peer& to, std::vector<at::Tensor> tensors) {
  const auto what = "a message to an actor on node '" + to.name() + "'";
  auto result = pack_for(to, std::move(tensors), what);
  if (result.detached) nodes::visit(link_of(to))->services().outbox.warn_detached(what);
  return result;
}

std::vector<at::Tensor> joined_tensors(node& here, autograd_message message) {
  auto& services = services_of(here);
  if (message.detached)
    services.outbox.warn_detached("a message of an actor on node '" + services.directory.name(message.message.node) + "'");
  return tensors_of(here, std::move(message));
}

at::Tensor joined_tensor(node& here, autograd_message message, std::size_t index) {
  return checked(joined_tensors(here, std::move(message)), index);
}

joined_scope::joined_scope(node& here, autograd_message message)
    : here_(runtime_of(here).link()),
      from_(message.message.node),
      scope_(runtime_of(here).services().self.id(), message.context, message.place, {}, bounds_of(message.modes),
             message.format),
      modes_(message.modes == compute_modes{} ? support::modes_of_thread(false) : message.modes),
      tensors_(tensors_of(here, std::move(message))) {}

at::Tensor joined_scope::tensor(std::size_t index) const { return checked(tensors_, index); }

std::shared_ptr<const engine::gradient_table> joined_scope::gradients() const {
  const auto id = support::call_scope::context();
  if (!id)
    throw error(errc::misuse,
                "joined_scope::gradients: the message belongs to no context; make it with join_graphs inside one");
  detail::continuation_scope::refuse_to_wait();
  contracts::gradients_ptr result;
  const auto known = passes_of(here_, id);
  if (known->completed == pass_number{})
    throw error(errc::misuse,
                "joined_scope::gradients: no backward pass of the message's context has completed, so it has no gradients; run "
                "context.backward(...).get() before the message is sent");
  const nodes::visit inside(*here_);
  if (const auto context = inside->services().contexts.find(id).actor) {
    const support::logger_release lets_go;
    caf::scoped_actor self{*inside->services().actors.system};
    self->request(context, support::within_bounds(inside->services().options.deadline), known)
      .receive([&](const contracts::gradients_ptr& all) { result = all; },
               [&](const caf::error& reason) { throw to_exception(reason, "the context's gradients"); });
  }
  return result ? result : std::make_shared<const engine::gradient_table>();
}

autograd_message joined_scope::reply(std::vector<at::Tensor> tensors) const {
  return pack_for(peer_of(here_, from_), std::move(tensors),
                  "an answer of an actor on node '" + nodes::visit(*here_)->services().self.name() + "'");
}

}  // namespace troupe
