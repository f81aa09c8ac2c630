// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/routing_desk.hpp>

#include <cstdint>
#include <memory>

#include <caf/send.hpp>

#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/services/meeting.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/node_network.hpp>
#include <troupe/actors/services/note_refusal.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::passes {

namespace {

std::string no_participant(const std::string& what, const context_id& id) {
  return what + ", which has no part in the context " + to_string(id);
}

template <class Message>
contracts::graph_task_actor task_for(const open_contexts& all, const open_context& context, const Message& message) {
  return all.join(context.record, message.pass, message.keep_graph, message.create_graph);
}

}  // namespace

open_context routing_desk::find_or_open(const context_id& id, node_id by) {
  auto known = contexts_.find(id);
  if (!known.actor && by.value != 0 && !here_.directory.gateway(by)) return known;  // GW-5
  if (known.actor || id.node == here_.self.id() || released_.contains(id) || !here_.directory.gateway(id.node)) return known;
  known = contexts_.make(id);
  if (contexts_.know(known)) return known;
  caf::anon_send(known.actor, support::close_atom::value);
  return {};
}

void routing_desk::add(contracts::outgoing_joint& joint) {
  if (auto context = find_or_open(joint.context, joint.to); context.record)
    context.record->add(std::move(joint.send), joint.to, std::move(joint.recordings));
}

void routing_desk::gradients(propagate_gradients& message) {
  const auto sender = here_.directory.find(message.from).value_or(node_id{});
  here_.directory.traffic.received(sender, message.gradients, message.packings);
  if (const auto why = why_not_from(message); !why.empty()) return refuse(why);
  to_pass(message, message.from);
}

void routing_desk::leave_out(prune& message) {
  here_.directory.traffic.received(message.context.node);
  to_pass(message, {});
}

template <class Report>
void routing_desk::report(Report& message) {
  here_.directory.traffic.received(message.from);
  const auto context = contexts_.find(message.context);
  if (!context.record) return say_failed(message, {}, errc::unknown_context, contexts_.unknown(message.context).what());
  if (!may_take_part(message.from, message.context))
    return refuse(no_participant("a report of node '" + here_.directory.name(message.from) + "'", message.context));
  if (auto task = context.record->task_of(message.pass)) self_->send(task, std::move(message));
}

template void routing_desk::report(participant_quiet& message);
template void routing_desk::report(participant_failed& message);

caf::result<discovered> routing_desk::walk(discover& question) {
  here_.directory.traffic.received(question.context.node);
  const auto context = contexts_.find(question.context);
  if (!context.record) {
    const auto why = contexts_.unknown(question.context);
    return make_error(why.code(), why.what());
  }
  if (context.record->lacks_capacity_for(question.pass)) {
    const auto why = no_capacity_text(question.context);
    refuse(why);
    return make_error(errc::refused, why);
  }
  if (auto task = task_for(contexts_, context, question)) return self_->delegate(task, std::move(question));
  return make_error(errc::pass_aborted, "the pass is over on this node");
}

caf::result<pass_aborted> routing_desk::abort(abort_pass& message) {
  here_.directory.traffic.received(message.context.node);
  if (const auto context = contexts_.find(message.context); context.record)
    if (auto task = context.record->skip(message.pass)) return self_->delegate(task, std::move(message));
  return pass_aborted{message.context, message.pass, here_.self.id(), {}, true};
}

void routing_desk::joined(const context_joined& news) {
  const auto context = contexts_.find(news.context);
  const auto gateway = here_.directory.gateway(news.from);
  if (news.context.node != here_.self.id()) {
    if (context.record) announce(news.context);
  } else if (gateway && context.record) {
    if (!may_take_part(news.from, news.context))
      return refuse(no_participant("the news that node '" + here_.directory.name(news.from) + "' has joined", news.context));
    context.record->members.announced(news.from);
  } else if (gateway) {
    caf::anon_send(gateway, release_context{news.context});
  }
}

void routing_desk::announce(const context_id& id) {
  if (auto gateway = here_.directory.gateway(id.node)) caf::anon_send(gateway, context_joined{id, here_.self.id()});
}

context_released routing_desk::release(const release_context& message) {
  if (auto context = close(message.context)) self_->send(context, support::close_atom::value);
  return {message.context, here_.self.id()};
}

void routing_desk::release(const context_id& id, const contracts::context_actor& actor) {
  close(id);
  self_->send(actor, support::close_atom::value);
}

void routing_desk::went_down(const contracts::peer_down& news) {
  for (const auto& [record, actor] : contexts_.all()) {
    const auto id = record->id();
    record->members.left(news.who.id);
    for (const auto& task : record->tasks()) self_->send(task, news);
    if (id.node != here_.self.id()) announce(id);
    if (news.is_gone && id.node == news.who.id) release(id, actor);
  }
  if (news.is_gone) released_.forget(news.who.id);
}

void routing_desk::is_up_again(node_id who) {
  for (const auto& context : contexts_.all())
    if (context.record->id().node == who) announce(context.record->id());
}

/// Whether the node may send gradients and reports in the context. True for a context that is not open here, because the
/// message then has no effect.
bool routing_desk::may_take_part(node_id who, const context_id& id) const {
  return takes_part_(who, id) || !contexts_.find(id).record;
}

/// Why the sender may not send gradients in the context; empty if it may. With a policy only the opener may name a pass that is
/// far ahead, because this node ignores all passes before the newest pass that it has followed.
std::string routing_desk::why_not_from(const propagate_gradients& message) {
  if (here_.network.peers.policy == nullptr) return {};
  const auto what = "gradients of node '" + message.from + "'";
  const auto from = here_.network.peers.introduced->find(message.from);
  if (!from) return what + ", which has not introduced itself";
  if (!may_take_part(*from, message.context)) return no_participant(what, message.context);
  const auto context = contexts_.find(message.context);
  if (*from == message.context.node || !context.record || context.record->passes().is_possible(message.pass)) return {};
  const auto why = what + " for pass " + std::to_string(message.pass.value) + " of the context " + to_string(message.context) +
                   ", which can't have begun yet";
  say_failed(message, message.from, errc::refused, why);  // the sender takes part, so the pass waits for this node
  return why;
}

/// Hands the message to the graph task of its pass. Starts the pass on this node if the pass is new here. `sender`: the name of
/// the node that sent gradients; empty for a prune.
template <class Message>
void routing_desk::to_pass(Message& message, const std::string& sender) {
  const auto context = contexts_.find(message.context);
  if (!context.record) return say_failed(message, sender, errc::unknown_context, contexts_.unknown(message.context).what());
  if (context.record->lacks_capacity_for(message.pass)) {
    const auto why = no_capacity_text(message.context);
    refuse(why);
    return say_failed(message, sender, errc::refused, why);
  }
  if (auto task = task_for(contexts_, context, message)) self_->send(task, std::move(message));
}

std::string routing_desk::no_capacity_text(const context_id& id) const {
  return "node '" + here_.self.name() + "' takes part in " + std::to_string(context_record::most_tasks) + " passes of node '" +
         here_.directory.name(id.node) + "' whose gradients are not gathered, and in no more; release some contexts";
}

/// Tells the initiator that this node takes no part in the pass. If the initiator is down for this node, tells the sender of
/// the message instead, which may still reach the initiator.
template <class Message>
void routing_desk::say_failed(const Message& message, const std::string& sender, errc code, const std::string& why) {
  const auto initiator = message.context.node;
  if (initiator == here_.self.id() && code == errc::unknown_context) return;
  participant_failed what{message.context, message.pass, here_.self.id(), static_cast<std::uint8_t>(code), why};
  const auto passes_on =
    sender.empty() || here_.directory.gateway(initiator) ? contracts::gateway_actor{} : here_.directory.gateway(sender);
  if (passes_on) return caf::anon_send(passes_on, std::move(what));
  services::report_to(self_, here_, initiator, std::move(what));
}

void routing_desk::refuse(const std::string& why) const { services::note_refusal(here_, why, self_->current_sender()); }

/// Forgets the context and remembers that it was released.
contracts::context_actor routing_desk::close(const context_id& id) {
  auto known = contexts_.find(id).actor;
  contexts_.forget(id);
  if (id.node != here_.self.id()) released_.add(id);  // a message can't open a context of this node
  on_closed_(id);
  return known;
}

}  // namespace troupe::passes
