// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/graph_task_actor.hpp>

#include <utility>

#include <caf/io/middleman.hpp>
#include <caf/io/typed_broker.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/passes/initiator_shell.hpp>
#include <troupe/actors/passes/participant_shell.hpp>
#include <troupe/actors/services/node_services.hpp>
#include <troupe/actors/support/broker_mailbox.hpp>
#include <troupe/actors/support/logger_release.hpp>
#include <troupe/actors/support/shared_life.hpp>

namespace troupe::passes {

graph_task_state::~graph_task_state() {
  if (here != nullptr) --here->counts().pass_parts;
  if (here != nullptr) here->deadlines().call_off(expiry);
  if (terms && terms->outcome) terms->outcome->fail(error(errc::stopping, "this node stopped during backward"));
}

void set_deadline(services::node_services& here, const contracts::graph_task_actor& task,
                  const support::deadline_clock::alarm& reserved) {
  here.deadlines().set(reserved, [weak = caf::actor_cast<caf::weak_actor_ptr>(task)] {
    if (auto strong = weak.lock())
      caf::anon_send(caf::actor_cast<contracts::graph_task_actor>(strong), support::deadline_atom::value);
  });
}

namespace {

template <class Self>
void on_quiet(Self self, participant_quiet& message) {
  if (self->state.lead)
    initiator_shell(self).quiet(message);
  else
    participant_shell(self).reported(message);
}

template <class Self>
void on_failure(Self self, participant_failed& message) {
  if (self->state.lead)
    initiator_shell(self).failed(message.from, static_cast<errc>(message.code), std::move(message.text));
  else
    participant_shell(self).report(std::move(message));  // passes on the report of a node that can't reach the initiator
}

template <class Self>
void on_burst_returned(Self self, burst& work) {
  if (const auto recvs = participant_shell(self).burst_returned(work))
    initiator_shell(self).found(self->state.here->id(), *recvs, self->state.part->settled());
}

template <class Self>
void on_peer_down(Self self, const contracts::peer_down& news) {
  const auto text = "node '" + news.who.name + "' went down during backward (" + news.reason + ")";
  initiator_shell(self).peer_went_down(news.who.id, text);
  if (!self->state.closed) participant_shell(self).peer_went_down(news.who.id, text);
}

template <class Self>
void close(Self self) {
  initiator_shell(self).context_released();
  participant_shell(self).close();
}

}  // namespace

template <class Self>
contracts::graph_task_actor::behavior_type make_graph_task(Self self, services::node_services* here, pass_terms_ptr terms,
                                                           const caf::actor& gateway) {
  support::close_mailbox_at_exit(self);
  support::live_as_long_as(self, gateway);
  auto& state = self->state;
  state.here = here;
  state.guard = here->guard(self->id(), network::own_actors::kind::inner);
  state.terms = std::move(terms);
  ++here->counts().pass_parts;
  if (state.terms->part) {
    state.part = std::move(state.terms->part);
  } else {
    std::set<message_id> sends;
    for (const auto& [send, index] : state.terms->task->send_index) sends.insert(send);
    state.part.emplace(here->id(), std::move(sends), state.terms->place);
  }
  if (state.terms->outcome) {
    state.lead.emplace(here->id(), state.terms->participants, !state.terms->fast);
    // A node without a network runs on an actor system of the program. There the deadline goes by CAF's clock, because tests
    // set CAF's clock.
    if (!here->networked())
      self->delayed_send(contracts::graph_task_actor{self}, state.terms->deadline, support::deadline_atom::value);
    else if (state.expiry = state.terms->expiry; state.expiry == support::deadline_clock::alarm{})
      set_deadline(*here, contracts::graph_task_actor{self}, state.expiry = here->deadlines().reserve(state.terms->deadline));
  }
  return {
    [=](support::start_atom) { participant_shell(self).start(); },
    [=](propagate_gradients& message) { participant_shell(self).gradients(message); },
    [=](participant_quiet& message) { on_quiet(self, message); },
    [=](participant_failed& message) { on_failure(self, message); },
    [=](discover& question) { return participant_shell(self).walk(question); },
    [=](prune& message) { participant_shell(self).leave_out(message); },
    [=](abort_pass&) { return participant_shell(self).abort(); },
    [=](contracts::burst_ptr& work) { on_burst_returned(self, *work); },
    [=](contracts::peer_down& news) { on_peer_down(self, news); },
    [=](support::gradients_atom) { return participant_shell(self).hand_out(); },
    [=](support::deadline_atom) { initiator_shell(self).deadline_passed(); },
    [=](support::close_atom) { close(self); },
  };
}

contracts::graph_task_actor spawn_graph_task(services::node_services& here, pass_terms_ptr terms) {
  const support::logger_release lets_go;
  using state = graph_task_state;
  const auto gateway = caf::actor_cast<caf::actor>(here.gateway());
  if (here.networked())
    return here.system().middleman().spawn_broker<caf::lazy_init>(
      make_graph_task<contracts::graph_task_actor::stateful_broker_pointer<state>>, &here, std::move(terms), gateway);
  return here.system().spawn(make_graph_task<contracts::graph_task_actor::stateful_pointer<state>>, &here, std::move(terms),
                             gateway);
}

}  // namespace troupe::passes
