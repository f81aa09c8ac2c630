// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/graph_task_actor.hpp>

#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include <caf/actor_cast.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/typed_broker.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/contracts/send_credits.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/passes/burst_runner.hpp>
#include <troupe/actors/services/burst_threads.hpp>
#include <troupe/actors/services/garbage.hpp>
#include <troupe/actors/services/meeting.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/node_network.hpp>
#include <troupe/actors/services/running_work.hpp>
#include <troupe/actors/support/activity.hpp>
#include <troupe/actors/support/broker_mailbox.hpp>
#include <troupe/actors/support/logger_release.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/actors/support/work_times.hpp>
#include <troupe/engine/protocol/weight_throwing.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::passes {

void set_deadline(support::deadline_clock& clock, const contracts::graph_task_actor& task,
                  const support::deadline_clock::alarm& reserved) {
  clock.set(reserved, [weak = caf::actor_cast<caf::weak_actor_ptr>(task)] {
    if (auto strong = weak.lock())
      caf::anon_send(caf::actor_cast<contracts::graph_task_actor>(strong), support::deadline_atom::value);
  });
}

graph_task_desk::graph_task_desk(support::desk_actor self, const task_services& here, pass_terms_ptr terms)
    : self_(self),
      here_(here),
      guard_(here.network.peers.own->add(self.get()->id(), gate::own_actors::kind::inner)),
      terms_(std::move(terms)),
      participant_(std::move(*terms_->participant)) {
  ++here_.counts.graph_tasks;
  if (!terms_->outcome) return;
  lead_.emplace(here_.self.id(), terms_->participants, !terms_->fast);
  if (expiry_ = terms_->expiry; expiry_ == support::deadline_clock::alarm{})
    set_deadline(here_.deadlines, me(), expiry_ = here_.deadlines.reserve(terms_->deadline));
}

graph_task_desk::~graph_task_desk() {
  --here_.counts.graph_tasks;
  here_.deadlines.call_off(expiry_);
  if (terms_->outcome) terms_->outcome->fail(error(errc::stopping, "this node stopped during backward"));
}

void graph_task_desk::start() { act(participant_.start(protocol::whole_weight())); }

void graph_task_desk::gradients(propagate_gradients& message) {
  const auto from = sender_of(message);
  if (!message.place.empty()) terms_->program = std::move(message.place);
  deliveries_.push_back({message.message, std::move(message.gradients), message.joint, std::move(message.requires_grad),
                         std::move(message.shapes), message.format, std::move(message.packings), std::move(message.unreached),
                         std::move(message.ahead.made)});
  act(participant_.gradients(message.message, std::move(message.carried), from));
  if (participant_.over()) deliveries_.clear();
}

/// The sender of the gradients. Empty on the initiator if the message is not the answer of a child, because the sender does not
/// matter then.
protocol::participant::sender graph_task_desk::sender_of(const propagate_gradients& message) {
  if (lead_ && message.answers == 0) return {};
  const auto from = here_.directory.find(message.from);
  if (!from) not_up_yet_.insert(message.from);
  return {from.value_or(node_id{}), message.answers};
}

void graph_task_desk::quiet(participant_quiet& message) {
  if (lead_) return act(lead_->quiet(std::move(message.carried)));
  act(participant_.reported(std::move(message.carried), {message.from, message.answers}));
}

void graph_task_desk::failed(participant_failed& message) {
  if (lead_) return fail(message.from, static_cast<errc>(message.code), std::move(message.text));
  services::report_to(self_, here_, terms_->context.node, std::move(message));  // from a node that can't reach the initiator
}

caf::typed_response_promise<discovered> graph_task_desk::discover(const troupe::discover& question) {
  auto promise = self_.response_promise<discovered>();
  if (participant_.over()) {
    promise.deliver(make_error(errc::pass_aborted, "the pass is over on node '" + here_.self.name() + "'"));
    return promise;
  }
  discovers_.push_back(promise);
  act(participant_.discover(question.sends));
  return promise;
}

void graph_task_desk::leave_out(prune& message) {
  act(participant_.prune({message.live.begin(), message.live.end()}, std::move(message.carried)));
}

caf::typed_response_promise<pass_aborted> graph_task_desk::abort() {
  auto promise = self_.response_promise<pass_aborted>();
  aborts_.push_back(promise);
  act(participant_.abort());
  return promise;
}

void graph_task_desk::returned(burst& work) {
  terms_->task = std::move(work.state);
  std::optional<protocol::failure> why;
  if (work.failure) why = {work.failure->code(), work.failure->what()};
  if (work.what == burst::kind::run || why) return act(participant_.returned(std::move(work.share), std::move(why)));
  act(participant_.walked(std::move(work.recvs)));
}

void graph_task_desk::peer_down(const contracts::peer_down& news) {
  const auto text = "node '" + news.who.name + "' went down during backward (" + news.reason + ")";
  if (lead_ && terms_->outcome->claim()) act(lead_->peer_down(news.who.id, text));
  act(participant_.peer_down(news.who.id, text));
}

caf::typed_response_promise<contracts::table_ptr> graph_task_desk::hand_out() {
  auto promise = self_.response_promise<contracts::table_ptr>();
  table_ = promise;
  act(participant_.gather());
  return promise;
}

void graph_task_desk::deadline_passed() {
  if (lead_ && !lead_->is_complete() && terms_->outcome->claim())
    act(lead_->deadline_passed("backward was not complete within its deadline of " + support::seconds_text(terms_->deadline)));
}

void graph_task_desk::close() {
  if (lead_ && !lead_->is_complete())
    terms_->outcome->fail(error(errc::unknown_context, "the context was released during backward"));
  act(participant_.close(lead_ || here_.directory.gateway(terms_->context.node)));
}

template <class Effects>
void graph_task_desk::act(Effects effects) {
  for (auto& each : effects) std::visit([this](auto& what) { this->carry_out(what); }, each);
}

void graph_task_desk::carry_out(participant::run_burst& what) {
  send_burst(burst::kind::run, std::move(what.share), std::move(what.drops), std::exchange(deliveries_, {}));
}

void graph_task_desk::carry_out(participant::run_walk& what) {
  const auto kind = what.where == protocol::walk_from::roots ? burst::kind::walk_roots : burst::kind::walk_sends;
  send_burst(kind, {}, std::move(what.sends), {});
}

void graph_task_desk::send_burst(burst::kind what, protocol::burst_share share, std::vector<message_id>&& sends,
                                 std::vector<burst::delivery>&& deliveries) {
  auto work = make_burst(*terms_, what, std::move(share));
  work->sends = std::move(sends);
  work->deliveries = std::move(deliveries);
  const auto owner = me();
  // The thread that waits for the pass is idle and may run the burst. If that thread runs the last burst, no other thread has
  // to wake it at the end of the pass.
  if (terms_->outcome &&
      terms_->outcome->result().post_to_waiter([to = run_services(here_), work, owner] { run_and_return(to, work, owner); }))
    return;
  auto run = [to = thread_services(here_), work, owner] {
    const services::own_thread own(to.running, "a backward pass");
    run_and_return(to, work, owner);
  };
  auto send = [to = &here_.bursts, work, owner] { to->post({work, owner}); };
  if (!here_.network.run_soon(here_.times, "backward", std::move(run), send)) send();
}

void graph_task_desk::carry_out(const participant::stop_burst&) {
  terms_->stop->store(true);
  here_.gradient_credits.wake();
}

/// Reports to the parent if the parent takes part in the pass and is not the initiator; otherwise reports to the initiator.
void graph_task_desk::carry_out(participant::report_quiet& what) {
  if (lead_) return act(lead_->quiet(std::move(what.carried)));
  participant_quiet message{terms_->context, terms_->pass, here_.self.id(), std::move(what.carried), what.answers};
  if (const auto parent = what.to_parent ? reach(terms_->position->parent) : contracts::gateway_actor{}) {
    caf::anon_send(parent, std::move(message));
  } else if (!protocol::is_empty(message.carried)) {
    message.answers = 0;
    services::report_to(self_, here_, terms_->context.node, std::move(message));
  }
}

void graph_task_desk::carry_out(participant::report_failure& what) {
  if (what.lacks_name) what.why.text = "node '" + here_.self.name() + "': " + what.why.text;
  if (lead_) return fail(here_.self.id(), what.why.code, std::move(what.why.text));
  services::report_to(self_, here_, terms_->context.node,
                      participant_failed{terms_->context, terms_->pass, here_.self.id(),
                                         static_cast<std::uint8_t>(what.why.code), std::move(what.why.text)});
}

void graph_task_desk::carry_out(participant::answer_discover& what) {
  const auto end = discovers_.begin() + static_cast<std::ptrdiff_t>(what.questions);
  for (auto promise = discovers_.begin(); promise != end; ++promise)
    promise->deliver(discovered{terms_->context, terms_->pass, std::exchange(what.recvs, {}), participant_.settled()});
  discovers_.erase(discovers_.begin(), end);
}

void graph_task_desk::carry_out(const participant::answer_walk& what) {
  if (lead_) act(lead_->found(here_.self.id(), what.recvs, participant_.settled()));
}

void graph_task_desk::carry_out(participant::answer_abort& what) {
  drop_buffers();
  const pass_aborted answer{terms_->context, terms_->pass, here_.self.id(), std::move(what.sent_to), participant_.settled()};
  for (auto& promise : std::exchange(aborts_, {})) promise.deliver(answer);
}

void graph_task_desk::carry_out(const participant::tell_senders& what) {
  const auto tell = [this](const contracts::gateway_actor& gateway) {
    if (gateway)
      caf::anon_send(
        gateway, participant_failed{terms_->context, terms_->pass, here_.self.id(), static_cast<std::uint8_t>(errc::peer_down),
                                    "node '" + here_.self.name() + "' lost its connection to the node that started the pass"});
  };
  for (const auto who : what.who) tell(here_.directory.gateway(who));
  for (const auto& name : not_up_yet_) tell(here_.directory.gateway(name));
}

void graph_task_desk::carry_out(const participant::hand_out&) {
  auto& task = terms_->task;
  contracts::table_ptr table;
  if (task && !participant_.over()) {
    const checked_lock lock(task->leaves_mutex);
    if (!task->leaves.empty()) table = std::make_shared<engine::gradient_table>(std::exchange(task->leaves, {}));
  }
  std::exchange(table_, std::nullopt)->deliver(std::move(table));
}

void graph_task_desk::carry_out(const participant::end&) {
  drop_buffers();
  self_.quit();
}

void graph_task_desk::drop_buffers() {
  deliveries_.clear();
  if (terms_->task) here_.garbage.add(std::move(terms_->task));
}

void graph_task_desk::carry_out(const lead::walk_roots&) { act(participant_.walk_roots()); }

// A node that goes down never answers. Then the news that the node is down (contracts::peer_down), or the deadline of the
// pass, ends the wait.
void graph_task_desk::carry_out(lead::ask_discover& what) {
  auto answered = [this, who = what.who](const discovered& answer) { act(lead_->found(who, answer.recvs, answer.settled)); };
  auto no_answer = [this, who = what.who](const caf::error& reason) {
    const auto why = to_exception(reason, "discovery on node '" + here_.directory.name(who) + "'");
    fail(who, why.code(), why.what());
  };
  if (!ask(what.who, caf::infinite,
           troupe::discover{terms_->context, terms_->pass, std::move(what.sends), terms_->keep_graph, terms_->create_graph},
           answered, no_answer))
    is_down(what.who);
}

void graph_task_desk::carry_out(lead::send_prune& what) {
  prune message{terms_->context,         terms_->pass,       std::move(what.live),
                std::move(what.carried), terms_->keep_graph, terms_->create_graph};
  if (what.who == here_.self.id())
    leave_out(message);
  else if (auto gateway = reach(what.who))
    caf::anon_send(gateway, std::move(message));
  else
    is_down(what.who);
}

void graph_task_desk::carry_out(const lead::ask_abort& what) {
  auto answered = [this, who = what.who](const pass_aborted& answer) {
    act(lead_->aborted(who, answer.sent_to, answer.settled));
  };
  auto no_answer = [this, who = what.who](const caf::error&) { act(lead_->aborted(who, {}, false)); };
  if (!ask(what.who, caf::duration{abort_deadline}, abort_pass{terms_->context, terms_->pass}, answered, no_answer))
    act(lead_->peer_down(what.who, "is down"));
}

void graph_task_desk::carry_out(const lead::await_aborts&) {
  self_.delayed_send(me(), abort_deadline, support::deadline_atom::value);
}

void graph_task_desk::carry_out(const lead::name_unused& what) {
  fail(here_.self.id(), errc::misuse,
       "fast mode counts on every send being used, and results of calls went unused: functions of node " +
         names_of(what.nodes) + " wait for gradients that will not come; smart mode takes care of that");
}

void graph_task_desk::carry_out(const lead::complete& what) {
  const auto& failure = lead_->result();
  here_.deadlines.call_off(expiry_);
  terms_->outcome->end(!failure);
  if (!failure) return terms_->outcome->tell();
  auto text = failure->text;
  if (!what.not_done.empty()) text += "; not done with it: " + names_of(what.not_done);
  terms_->outcome->fail(error(failure->code, text));
  act(participant_.close(true));  // the gradients of a failed pass are not needed
}

void graph_task_desk::fail(node_id from, errc code, std::string text) {
  if (terms_->outcome->claim()) act(lead_->failed(from, code, std::move(text)));
}

/// The gateway of another node, for a message to it; null if the node is down.
contracts::gateway_actor graph_task_desk::reach(node_id who) {
  here_.directory.traffic.sent(who);
  return here_.directory.gateway(who);
}

/// Sends a request to the graph task of the node, which may be this actor. Returns false if the node is down.
template <class Question, class Answered, class Failed>
bool graph_task_desk::ask(node_id who, caf::duration limit, Question question, Answered answered, Failed no_answer) {
  if (who == here_.self.id()) {
    self_.request(me(), limit, std::move(question)).then(std::move(answered), std::move(no_answer));
    return true;
  }
  const auto gateway = reach(who);
  if (gateway) self_.request(gateway, limit, std::move(question)).then(std::move(answered), std::move(no_answer));
  return gateway != nullptr;
}

void graph_task_desk::is_down(node_id who) { fail(who, errc::peer_down, "node '" + here_.directory.name(who) + "' is down"); }

std::string graph_task_desk::names_of(const std::vector<node_id>& nodes) const {
  std::string names;
  for (auto who : nodes) support::add_quoted(names, here_.directory.name(who));
  return names;
}

namespace {

struct graph_task_state {
  static inline const char* name = "graph_task";
  std::optional<graph_task_desk> desk;
};

contracts::graph_task_actor::behavior_type handlers(graph_task_desk* desk) {
  return {
    [=](support::start_atom) { desk->start(); },
    [=](propagate_gradients& message) { desk->gradients(message); },
    [=](participant_quiet& message) { desk->quiet(message); },
    [=](participant_failed& message) { desk->failed(message); },
    [=](const discover& question) { return desk->discover(question); },
    [=](prune& message) { desk->leave_out(message); },
    [=](const abort_pass&) { return desk->abort(); },
    [=](contracts::burst_ptr& work) { desk->returned(*work); },
    [=](const contracts::peer_down& news) { desk->peer_down(news); },
    [=](support::gradients_atom) { return desk->hand_out(); },
    [=](support::deadline_atom) { desk->deadline_passed(); },
    [=](support::close_atom) { desk->close(); },
  };
}

}  // namespace

contracts::graph_task_actor spawn_graph_task(const task_services& here, pass_terms_ptr terms) {
  const support::logger_release lets_go;
  auto run = [here, terms = std::move(terms), gateway = caf::actor_cast<caf::actor>(here.actors.gateway)](
               contracts::graph_task_actor::stateful_broker_pointer<graph_task_state> self) {
    support::close_mailbox_at_exit(self);
    support::live_as_long_as(self, gateway);
    return handlers(&self->state.desk.emplace(self, here, terms));
  };
  return here.actors.system->middleman().spawn_broker<caf::lazy_init>(std::move(run));
}

}  // namespace troupe::passes
