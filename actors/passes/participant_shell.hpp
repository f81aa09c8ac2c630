// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <caf/send.hpp>

#include <troupe/actors/passes/burst_runner.hpp>
#include <troupe/actors/passes/pass_shell.hpp>
#include <troupe/engine/protocol/purse.hpp>

namespace troupe::passes {

/// The handlers of a graph task that are about this node's part in a pass. protocol::participant decides what the handlers do.
template <class Self>
struct participant_shell : pass_shell<Self> {
  using base = pass_shell<Self>;
  using base::base, base::here, base::me, base::self, base::state, base::terms;

  void start() { act(state.part->start(protocol::whole_purse())); }

  void gradients(propagate_gradients& message) {
    state.heard_from.insert(message.from);
    if (!state.part->over())
      state.deliveries.push_back({message.message, std::move(message.gradients), message.joint,
                                  std::move(message.requires_grad), std::move(message.shapes), message.format,
                                  std::move(message.packings), std::move(message.unreached)});
    if (!message.place.empty()) state.terms->program = std::move(message.place);
    auto steps = state.part->gradients(message.message, std::move(message.carried), sender_of(message));
    if (steps.failure) state.deliveries.pop_back();
    act(std::move(steps));
  }

  void reported(participant_quiet& message) {
    act(state.part->reported(std::move(message.carried), {message.from, message.answers}));
  }

  caf::typed_response_promise<discovered> walk(discover& question) {
    auto promise = base::template promise<discovered>();
    if (state.part->over()) {
      promise.deliver(make_error(errc::pass_aborted, "the pass is over on node '" + here.name() + "'"));
      return promise;
    }
    state.discover_promises.push_back(promise);
    state.walk_sends.insert(state.walk_sends.end(), question.sends.begin(), question.sends.end());
    act(state.part->walk(protocol::walk_from::sends));
    return promise;
  }

  void walk_roots() { act(state.part->walk(protocol::walk_from::roots)); }

  void leave_out(prune& message) {
    act(state.part->prune({message.live.begin(), message.live.end()}, std::move(message.carried)));
  }

  caf::typed_response_promise<pass_aborted> abort() {
    auto promise = base::template promise<pass_aborted>();
    state.abort_promises.push_back(promise);
    base::stop_burst();
    act(state.part->abort());
    return promise;
  }

  /// Handles a burst that has returned: takes the engine's graph task back, and tells protocol::participant that the burst ended
  /// or failed. Returns the recvs that the walk reached if the burst was the walk of a discovery from the roots and did not
  /// fail; otherwise nothing.
  std::optional<std::vector<message_id>> burst_returned(burst& work) {
    state.terms->task = std::move(work.state);
    for (const auto& [who, count] : work.share.sent)
      if (state.sent_to.insert(who).second && state.down.contains(who) && !work.failure)
        work.failure.emplace(errc::peer_down, state.down.at(who));
    if (state.closed) {
      base::drop_buffers();
      self->quit();
      return std::nullopt;
    }
    if (work.what != burst::kind::run) return walk_returned(work);
    if (!work.failure) {
      act(state.part->burst_ended(std::move(work.share)));
      if (state.table_promise && !state.part->away()) hand_out_gradients();
      return std::nullopt;
    }
    const bool was_over = state.part->over();
    act(state.part->burst_failed());
    if (!was_over) base::fail(work.failure->code(), work.failure->what());
    return std::nullopt;
  }

  void peer_went_down(node_id who, const std::string& text) {
    if (state.sent_to.contains(who) && !state.part->over())
      base::fail(errc::peer_down, text);
    else if (state.part->away())
      state.down.emplace(who, text);  // only the returned burst tells whether gradients were sent to that node
  }

  caf::typed_response_promise<contracts::table_ptr> hand_out() {
    auto promise = base::template promise<contracts::table_ptr>();
    state.table_promise = promise;
    if (!state.part->away()) hand_out_gradients();
    return promise;
  }

  void close() {
    tell_senders();
    base::end();
  }

 private:
  void act(protocol::participant::steps steps) {
    state.drops.insert(state.drops.end(), steps.drop.begin(), steps.drop.end());
    if (steps.start_burst) send_burst(burst::kind::run, state.part->take_burst(), std::exchange(state.drops, {}));
    if (steps.walk == protocol::walk_from::roots)
      send_burst(burst::kind::walk_roots, {}, {});
    else if (steps.walk == protocol::walk_from::sends) {
      state.walk_promises = std::exchange(state.discover_promises, {});
      send_burst(burst::kind::walk_sends, {}, std::exchange(state.walk_sends, {}));
    }
    if (steps.quiet) be_quiet(std::move(*steps.quiet));
    if (steps.failure) base::fail(errc::invalid_gradient, "node '" + here.name() + "': " + *steps.failure);
    if (steps.answer_abort) answer_aborts();
  }

  /// Who sent the gradients, where that matters: a node without parent and children need not know.
  protocol::participant::sender sender_of(const propagate_gradients& message) const {
    const auto& place = terms.place;
    if (!place || (place->parent == node_id{} && message.answers == 0)) return {};
    return {here.directory().find(message.from).value_or(node_id{}), message.answers};
  }

  /// To the parent, which takes part in the pass and is no initiator, or to the initiator.
  void be_quiet(protocol::participant::report what) {
    participant_quiet message{terms.context, terms.pass, here.id(), std::move(what.carried), what.answers};
    if (const auto parent = what.to_parent ? here.directory().gateway(terms.place->parent) : contracts::gateway_actor{}) {
      here.directory().sent(terms.place->parent);
      caf::anon_send(parent, std::move(message));
    } else if (!protocol::is_empty(message.carried)) {
      message.answers = 0;
      base::report(std::move(message));
    }
  }

  void send_burst(burst::kind what, protocol::burst_share share, std::vector<message_id>&& sends) {
    auto work = make_burst(*state.terms, what, std::move(share));
    work->sends = std::move(sends);
    if (what == burst::kind::run) work->deliveries = std::exchange(state.deliveries, {});
    const auto owner = me();
    // The thread that waits for the pass is idle and may run the burst. If that thread runs the last burst, no other thread has
    // to wake it at the end of the pass.
    if (terms.outcome && terms.outcome->result().offer([to = &here, work, owner] { run_and_return(*to, work, owner); })) return;
    auto run = [to = &here, work, owner] {
      const services::node_services::own_thread own(*to, "a backward pass");
      run_and_return(*to, work, owner);
    };
    auto send = [to = &here, work, owner] {
      to->bursts().has_started() ? to->bursts().post({work, owner}) : caf::anon_send(to->continuation(), work, owner);
    };
    if (!here.run_soon("backward", std::move(run), send)) send();
  }

  std::optional<std::vector<message_id>> walk_returned(burst& work) {
    auto promises = std::exchange(state.walk_promises, {});
    act(state.part->burst_ended({}));
    if (work.failure) {
      base::fail(work.failure->code(), work.failure->what());
      return std::nullopt;
    }
    if (work.what == burst::kind::walk_roots) return std::move(work.recvs);
    for (auto& promise : promises)  // each question needs an answer: the first answer has all recvs, the others none
      promise.deliver(discovered{terms.context, terms.pass, std::exchange(work.recvs, {}), state.part->settled()});
    return std::nullopt;
  }

  void answer_aborts() {
    base::drop_buffers();
    pass_aborted answer{
      terms.context, terms.pass, here.id(), {state.sent_to.begin(), state.sent_to.end()}, state.part->settled()};
    for (auto& promise : std::exchange(state.abort_promises, {})) promise.deliver(answer);
    if (!state.lead || state.closed) self->quit();
  }

  void hand_out_gradients() {
    auto& task = state.terms->task;
    contracts::table_ptr table;
    if (task && !state.part->over() && !task->leaves.empty())
      table = std::make_shared<engine::gradient_table>(std::exchange(task->leaves, {}));
    std::exchange(state.table_promise, std::nullopt)->deliver(std::move(table));
  }

  /// If this node can't reach the initiator, sends a report of the failure to the nodes that sent gradients to this node. A
  /// node that can reach the initiator passes the report on.
  void tell_senders() {
    if (state.lead || here.directory().gateway(terms.context.node)) return;
    for (const auto& name : state.heard_from)
      if (auto gateway = here.directory().gateway(name))
        caf::anon_send(gateway, base::failure(errc::peer_down, "node '" + here.name() +
                                                                 "' lost its connection to the node that started the pass"));
  }
};

template <class Self>
participant_shell(Self) -> participant_shell<Self>;

}  // namespace troupe::passes
