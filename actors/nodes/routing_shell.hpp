// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <caf/result.hpp>
#include <caf/send.hpp>

#include <troupe/actors/nodes/calling_shell.hpp>
#include <troupe/actors/passes/context_actor.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/passes/pass_start.hpp>

namespace troupe::nodes {

/// The handlers of the `gateway` actor that open and release contexts, and that route the messages of passes to graph tasks.
template <class Self>
struct routing_shell : gateway_shell<Self> {
  using base = gateway_shell<Self>;
  using base::base, base::here, base::parts, base::self, base::state;

  /// Returns the open context with this id. If the context is not open here and another node opened it first, opens the context
  /// here. `by`: the node to or from which a message in the context goes. Empty if the context may not be opened (GW-1, GW-2,
  /// GW-5).
  passes::open_context find_or_open(const context_id& id, node_id by) {
    auto known = parts.contexts.find(id);
    if (!known.actor && by.value != 0 && !here.directory().gateway(by)) return known;  // GW-5
    if (known.actor || id.node == here.id() || state.released.contains(id) || !here.directory().gateway(id.node)) return known;
    known.record = std::make_shared<passes::context_record>(id, here.id(), here.counts());
    known.actor = passes::spawn_context(here, known.record);
    if (parts.contexts.know(known)) return known;
    caf::anon_send(known.actor, support::close_atom::value);
    return {};
  }

  void add(contracts::outgoing_joint& joint) {
    if (auto context = find_or_open(joint.context, joint.to); context.record)
      context.record->add(std::move(joint.send), joint.to, std::move(joint.recordings));
  }

  void gradients(propagate_gradients& message) {
    here.directory().received(message.from, message.gradients, message.packings);
    if (const auto why = why_not_from(message); !why.empty()) return note_refusal(here, why, self->current_sender());
    to_pass(message);
  }

  void leave_out(prune& message) {
    here.directory().received(message.context.node);
    to_pass(message);
  }

  /// Routes a report about a pass to its graph task. A report never starts a pass.
  template <class Report>
  void report(Report& message) {
    here.directory().received(message.from);
    const auto context = parts.contexts.find(message.context);
    if (!context.record) return say_unknown(message, {});
    if (!may_take_part(message.from, message.context))
      return note_refusal(here, without_part("a report of node '" + here.directory().name(message.from) + "'", message.context),
                          self->current_sender());
    if (auto task = context.record->task_of(message.pass)) self->send(task, std::move(message));
  }

  caf::result<discovered> walk(discover& question) {
    here.directory().received(question.context.node);
    const auto context = parts.contexts.find(question.context);
    if (!context.record) return base::no_context(question.context);
    if (context.record->lacks_room_for(question.pass)) {
      const auto why = without_room(question.context);
      note_refusal(here, why, self->current_sender());
      return make_error(errc::refused, why);
    }
    if (auto task = join_pass(context, question)) return self->delegate(task, std::move(question));
    return make_error(errc::pass_aborted, "the pass is over on this node");
  }

  caf::result<pass_aborted> abort(abort_pass& message) {
    here.directory().received(message.context.node);
    if (const auto context = parts.contexts.find(message.context); context.record)
      if (auto task = context.record->skip(message.pass)) return self->delegate(task, std::move(message));
    return pass_aborted{message.context, message.pass, here.id(), {}, true};
  }

  /// Node `from` says that it holds a part of a context. If this node opened the context, `from` may be unknown in the record,
  /// because the node that called `from` went down. If another node opened the context, `from` is cut off from the opener. Then
  /// this node tells the opener that this node holds a part of the context too. With a policy `from` becomes a peer only if others have
  /// said that it has a part, or if its role may end all contexts.
  void joined(const context_joined& news) {
    const auto context = parts.contexts.find(news.context);
    const bool is_up = here.directory().gateway(news.from) != nullptr;
    if (news.context.node != here.id()) {
      if (context.record) announce(news.context);
    } else if (is_up && context.record) {
      if (!may_take_part(news.from, news.context))
        return note_refusal(
          here, without_part("the news that node '" + here.directory().name(news.from) + "' has joined", news.context),
          self->current_sender());
      context.record->announced(news.from);
    } else if (is_up) {
      caf::anon_send(here.directory().gateway(news.from), release_context{news.context});
    }
  }

  context_released release(const release_context& message) {
    if (auto context = close(message.context)) self->send(context, support::close_atom::value);
    return {message.context, here.id()};
  }

  void release(const context_id& id, const contracts::context_actor& actor) {
    close(id);
    self->send(actor, support::close_atom::value);
  }

  void went_down(const contracts::peer_down& news) {
    for (const auto& [record, actor] : parts.contexts.all()) {
      const auto id = record->id();
      record->left(news.who.id);
      for (const auto& task : record->tasks()) self->send(task, news);
      if (id.node != here.id()) announce(id);
      if (news.is_gone && id.node == news.who.id) release(id, actor);
    }
    if (news.is_gone) state.released.forget(news.who.id);
  }

  /// Names the contexts of the node that are open here. The node answers if it has released a context meanwhile.
  void is_up_again(node_id who) {
    for (const auto& context : parts.contexts.all())
      if (context.record->id().node == who) announce(context.record->id());
  }

  /// Tells the node that opened the context that this node holds a part of it. That node answers if it has released the context.
  void announce(const context_id& id) {
    if (auto gateway = here.directory().gateway(id.node)) caf::anon_send(gateway, context_joined{id, here.id()});
  }

 private:
  /// Whether the node may send gradients and reports in the context. A message in a context that is not open here does nothing.
  bool may_take_part(node_id who, const context_id& id) const {
    return parts.rights.has_part(who, id) || !parts.contexts.find(id).record;
  }

  static std::string without_part(const std::string& what, const context_id& id) {
    return what + ", which has no part in the context " + to_string(id);
  }

  /// Why the sender may not send gradients in the context; empty if it may. With a policy only the opener may name a pass that is far
  /// ahead: this node ignores all passes before one that it has followed.
  std::string why_not_from(const propagate_gradients& message) {
    if (here.policy() == nullptr) return {};
    const auto what = "gradients of node '" + message.from + "'";
    const auto from = here.proven_id_of(message.from);
    if (!from) return what + ", which has not introduced itself";
    if (!may_take_part(*from, message.context)) return without_part(what, message.context);
    const auto context = parts.contexts.find(message.context);
    if (*from == message.context.node || !context.record || context.record->is_possible(message.pass)) return {};
    const auto why = what + " for pass " + std::to_string(message.pass.value) + " of the context " +
                     to_string(message.context) + ", which can't have begun yet";
    say_failed(message, message.from, errc::refused, why);  // the sender has a part, so the pass waits for this node
    return why;
  }

  template <class Message>
  contracts::graph_task_actor join_pass(const passes::open_context& context, const Message& message) {
    return passes::join_pass(here, context.record, message.pass, message.keep_graph, message.create_graph);
  }

  /// Starts the pass on this node if the pass is new here.
  template <class Message>
  void to_pass(Message& message) {
    const auto context = parts.contexts.find(message.context);
    std::string sender;
    if constexpr (std::is_same_v<Message, propagate_gradients>) sender = message.from;
    if (!context.record) return say_unknown(message, sender);
    if (context.record->lacks_room_for(message.pass)) {
      const auto why = without_room(message.context);
      note_refusal(here, why, self->current_sender());
      return say_failed(message, sender, errc::refused, why);
    }
    if (auto task = join_pass(context, message)) self->send(task, std::move(message));
  }

  std::string without_room(const context_id& id) const {
    return "node '" + here.name() + "' has " + std::to_string(passes::context_record::most_parts) +
           " parts in passes of node '" + here.directory().name(id.node) +
           "' whose gradients are not gathered, and takes part in no more; release some contexts";
  }

  /// Tells the initiator that the context is not open on this node.
  template <class Message>
  void say_unknown(const Message& message, const std::string& sender) {
    if (message.context.node != here.id())
      say_failed(message, sender, errc::unknown_context, parts.contexts.unknown(message.context).what());
  }

  /// Tells the initiator that this node takes no part in the pass. If the initiator is down for this node, tells the sender of the message
  /// instead, which may still reach the initiator.
  template <class Message>
  void say_failed(const Message& message, const std::string& sender, errc code, const std::string& why) {
    participant_failed what{message.context, message.pass, here.id(), static_cast<std::uint8_t>(code), why};
    const auto initiator = message.context.node;
    const auto passes_on =
      sender.empty() || here.directory().gateway(initiator) ? contracts::gateway_actor{} : here.directory().gateway(sender);
    if (passes_on) return caf::anon_send(passes_on, std::move(what));
    services::report_to(self, here, initiator, std::move(what));
  }

  /// Forgets the context and remembers that it was released.
  contracts::context_actor close(const context_id& id) {
    auto known = parts.contexts.find(id).actor;
    parts.contexts.forget(id);
    if (id.node != here.id()) state.released.add(id);  // no message opens a context of this node
    calling_shell(self).context_closed(id);
    refuse_waiting(self, state.waiting.of(id), error(errc::unknown_context, "its context was released"));
    return known;
  }
};

template <class Self>
routing_shell(Self) -> routing_shell<Self>;

}  // namespace troupe::nodes
