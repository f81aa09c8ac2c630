// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/graph_task_actor.hpp>

#include <utility>

#include <caf/io/middleman.hpp>
#include <caf/io/typed_broker.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/contracts/context.hpp>
#include <troupe/actors/contracts/peer.hpp>
#include <troupe/actors/passes/burst_runner.hpp>
#include <troupe/actors/services/node_services.hpp>
#include <troupe/actors/support/broker_mailbox.hpp>
#include <troupe/actors/support/exception_text.hpp>
#include <troupe/actors/support/quoted_names.hpp>
#include <troupe/engine/protocol/purse.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::passes {

namespace {

// An abort that gets no answer: the peer is stuck. It is given up on rather than waited for.
constexpr std::chrono::milliseconds abort_deadline{1000};

/// What the handlers share; made anew for each message, it holds nothing of its own.
template <class Self>
struct pass_shell {
  Self self;
  graph_task_state& state;
  services::node_services& here;
  const pass_terms& terms;

  explicit pass_shell(Self s) : self(s), state(s->state), here(*s->state.here), terms(*s->state.terms) {}

  void send_burst(burst::kind what, protocol::participant::burst_terms carried, std::vector<message_id> sends) {
    auto work = make_burst(*state.terms, what, std::move(carried));
    work->sends = std::move(sends);
    if (what == burst::kind::run) work->deliveries = std::exchange(state.deliveries, {});
    const contracts::graph_task_actor me{self};
    // The thread that waits for the pass has nothing else to do, and need not be told of its end by another.
    if (terms.outcome && terms.outcome->result().offer([to = &here, work, me] { run_and_return(*to, work, me); })) return;
    auto run = [to = &here, work, me] {
      const services::node_services::own_thread own(*to);
      run_and_return(*to, work, me);
    };
    auto send = [to = here.continuation(), work, me] { caf::anon_send(to, work, me); };
    if (!here.run_soon("backward", std::move(run), send)) send();
  }

  void act(protocol::participant::steps steps) {
    state.drops.insert(state.drops.end(), steps.drop.begin(), steps.drop.end());
    if (steps.start_burst) send_burst(burst::kind::run, state.part->take_burst(), std::exchange(state.drops, {}));
    if (steps.walk == protocol::walk_from::roots)
      send_burst(burst::kind::walk_roots, {}, {});
    else if (steps.walk == protocol::walk_from::sends) {
      state.walk_promises = std::exchange(state.discover_promises, {});
      send_burst(burst::kind::walk_sends, {}, std::exchange(state.walk_sends, {}));
    }
    if (steps.quiet) report(participant_quiet{terms.context, terms.pass, here.id(), std::move(*steps.quiet)});
    if (steps.failure) fail(errc::invalid_gradient, "node '" + here.name() + "': " + *steps.failure);
    if (steps.answer_abort) answer_aborts();
  }

  void lead_failed(node_id from, errc code, std::string text) {
    if (terms.outcome->take_over()) act(state.lead->failed(from, code, std::move(text)));
  }

  void fail(errc code, std::string text) {
    report(participant_failed{terms.context, terms.pass, here.id(), static_cast<std::uint8_t>(code), std::move(text)});
  }

  template <class Report>
  void report(Report what) {
    if (state.lead)
      self->send(contracts::graph_task_actor{self}, std::move(what));
    else if (auto face = here.directory().face(terms.context.node)) {
      here.directory().sent(terms.context.node);
      caf::anon_send(caf::actor_cast<contracts::peer_actor>(face),
                     std::move(what));  // a named sender would become a proxy at the other node
    }
  }

  void answer_aborts() {
    drop_buffers();
    pass_aborted answer{terms.context, terms.pass, here.id(), {state.sent_to.begin(), state.sent_to.end()}};
    for (auto& promise : std::exchange(state.abort_promises, {})) promise.deliver(answer);
    if (!state.lead || state.closed) self->quit();
  }

  /// This node alone takes the initiator for down: tells those that sent gradients, which can tell it.
  void tell_senders() {
    if (state.lead || here.directory().face(terms.context.node)) return;
    for (const auto& name : state.heard_from)
      if (auto face = here.directory().face(name))
        caf::anon_send(caf::actor_cast<contracts::peer_actor>(face),
                       participant_failed{terms.context, terms.pass, here.id(), static_cast<std::uint8_t>(errc::peer_down),
                                          "node '" + here.name() + "' lost its connection to the node that started the pass"});
  }

  std::string names_of(const std::vector<node_id>& nodes) const {
    std::string names;
    for (auto who : nodes) support::add_quoted(names, here.directory().name(who));
    return names;
  }

  void drop_buffers() {
    state.deliveries.clear();
    if (state.terms->task) here.discard(std::move(state.terms->task));
  }

  void act(protocol::initiator::steps steps) {
    if (steps.walk_roots) act(state.part->walk(protocol::walk_from::roots));
    for (auto& [who, sends] : steps.discover) ask_discover(who, std::move(sends));
    for (auto& [who, each] : steps.prune)
      send_to(who, prune{terms.context, terms.pass, std::move(each.live), std::move(each.carried), terms.keep_graph,
                         terms.create_graph});
    if (!steps.unused.empty())
      lead_failed(here.id(), errc::misuse,
                  "fast mode counts on every send being used, and results of calls went unused: functions of node " +
                    names_of(steps.unused) + " wait for gradients that will not come; smart mode takes care of that");
    for (auto who : steps.abort) ask_abort(who);
    if (state.lead->aborting() && !steps.abort.empty())
      self->delayed_send(contracts::graph_task_actor{self}, abort_deadline, support::deadline_atom::value);
    if (steps.complete) complete();
  }

  template <class Message>
  void send_to(node_id who, Message what) {
    if (who != here.id()) here.directory().sent(who);
    if (who == here.id())
      self->send(contracts::graph_task_actor{self}, std::move(what));
    else if (auto face = here.directory().face(who))
      caf::anon_send(caf::actor_cast<contracts::peer_actor>(face), std::move(what));
    else
      lead_failed(who, errc::peer_down, "node '" + here.directory().name(who) + "' is down");
  }

  // Answers of a node that died meanwhile never come: its peer_down stands for them, or the deadline of the pass.
  void ask_discover(node_id who, std::vector<message_id> sends) {
    auto fail_pass = [s = self, who](const caf::error& reason) {
      pass_shell sh(s);
      auto what = to_exception(reason, "discovery on node '" + sh.here.directory().name(who) + "'");
      sh.lead_failed(who, what.code(), what.what());
    };
    auto go_on = [s = self](const discovered& answer) {
      pass_shell sh(s);
      sh.act(sh.state.lead->found(answer.recvs));
    };
    if (who != here.id()) here.directory().sent(who);
    discover question{terms.context, terms.pass, std::move(sends), terms.keep_graph, terms.create_graph};
    if (who == here.id())
      self->request(contracts::graph_task_actor{self}, caf::infinite, std::move(question)).then(go_on, fail_pass);
    else if (auto face = here.directory().face(who))
      self->request(caf::actor_cast<contracts::peer_actor>(face), caf::infinite, std::move(question)).then(go_on, fail_pass);
    else
      lead_failed(who, errc::peer_down, "node '" + here.directory().name(who) + "' is down");
  }

  void ask_abort(node_id who) {
    auto go_on = [s = self, who](const pass_aborted& answer) {
      pass_shell sh(s);
      sh.act(sh.state.lead->aborted(who, answer.sent_to));
    };
    auto give_up = [s = self, who](const caf::error&) {
      pass_shell sh(s);
      sh.act(sh.state.lead->aborted(who, {}));
    };
    if (who != here.id()) here.directory().sent(who);
    abort_pass question{terms.context, terms.pass};
    if (who == here.id())
      self->request(contracts::graph_task_actor{self}, abort_deadline, question).then(go_on, give_up);
    else if (auto face = here.directory().face(who))
      self->request(caf::actor_cast<contracts::peer_actor>(face), abort_deadline, question).then(go_on, give_up);
    else
      self->send(contracts::graph_task_actor{self},
                 contracts::peer_down{member{here.directory().name(who), who, {}, 0}, "is down"});
  }

  void complete() {
    const auto& failure = state.lead->result();
    here.deadlines().call_off(state.expiry);
    if (failure) self->send(caf::actor_cast<contracts::context_actor>(terms.owner), support::failed_atom::value, terms.pass);
    terms.outcome->end(!failure);
    auto result = terms.outcome->result();
    if (failure)
      result.set_error(error(failure->code, failure->text));
    else
      result.set_value(done{});
    if (failure && !state.part->away()) drop_buffers();
  }

  void hand_out_gradients() {
    auto& task = state.terms->task;
    contracts::table_ptr table;
    if (task && !state.part->over() && !task->leaves.empty())
      table = std::make_shared<engine::gradient_table>(std::exchange(task->leaves, {}));
    std::exchange(state.take_promise, std::nullopt)->deliver(std::move(table));
  }

  void burst_returned(burst& work) {
    state.terms->task = std::move(work.state);
    for (auto who : work.sent_to)
      if (state.sent_to.insert(who).second && state.down.contains(who) && !work.failure)
        work.failure.emplace(errc::peer_down, state.down.at(who));
    if (state.closed) {
      drop_buffers();
      self->quit();
      return;
    }
    if (work.what != burst::kind::run) return walk_returned(work);
    if (!work.failure) {
      act(state.part->burst_ended(std::move(work.carried)));
      if (state.take_promise && !state.part->away()) hand_out_gradients();
      return;
    }
    auto was_over = state.part->over();
    act(state.part->burst_failed());
    if (!was_over) fail(work.failure->code(), work.failure->what());
  }

  void walk_returned(burst& work) {
    auto promises = std::exchange(state.walk_promises, {});
    act(state.part->burst_ended({}));
    if (work.failure) return fail(work.failure->code(), work.failure->what());
    if (work.what == burst::kind::walk_roots) return act(state.lead->found(work.recvs));
    for (auto& promise : promises)  // one answer for each question: the first has it all
      promise.deliver(discovered{terms.context, terms.pass, std::exchange(work.recvs, {})});
  }
};

}  // namespace

graph_task_state::~graph_task_state() {
  if (here != nullptr) --here->counts().pass_parts;
  if (here != nullptr) here->deadlines().call_off(expiry);
  if (terms && terms->outcome) terms->outcome->result().set_error(error(errc::stopping, "this node stopped during backward"));
}

support::deadline_clock::alarm set_deadline(services::node_services& here, const contracts::graph_task_actor& task,
                                            std::chrono::milliseconds deadline) {
  return here.deadlines().set(deadline, [weak = caf::actor_cast<caf::weak_actor_ptr>(task)] {
    if (auto strong = weak.lock())
      caf::anon_send(caf::actor_cast<contracts::graph_task_actor>(strong), support::deadline_atom::value);
  });
}

template <class Self>
contracts::graph_task_actor::behavior_type make_graph_task(Self self, services::node_services* here, pass_terms_ptr terms) {
  support::close_mailbox_at_exit(self);
  self->link_to(here->face());
  auto& state = self->state;
  state.here = here;
  state.terms = std::move(terms);
  ++here->counts().pass_parts;
  if (state.terms->part) {
    state.part = std::move(state.terms->part);
  } else {
    std::set<message_id> sends;
    for (const auto& [send, index] : state.terms->task->send_index) sends.insert(send);
    state.part.emplace(here->id(), std::move(sends));
  }
  if (state.terms->outcome) {
    state.lead.emplace(here->id(), state.terms->participants, !state.terms->fast);
    // On a system of the caller's CAF's clock is used: tests turn it.
    if (!here->networked())
      self->delayed_send(contracts::graph_task_actor{self}, state.terms->deadline, support::deadline_atom::value);
    else if (state.terms->expiry == support::deadline_clock::alarm{})
      state.expiry = set_deadline(*here, contracts::graph_task_actor{self}, state.terms->deadline);
    else
      state.expiry = state.terms->expiry;
  }
  using aborted_promise = caf::typed_response_promise<pass_aborted>;
  using table_promise = caf::typed_response_promise<contracts::table_ptr>;
  using discovered_promise = caf::typed_response_promise<discovered>;
  return {
    [=](support::start_atom) {
      pass_shell sh(self);
      sh.act(sh.state.part->start(protocol::whole_purse()));
    },
    [=](propagate_gradients& message) {
      pass_shell sh(self);
      sh.state.heard_from.insert(message.from);
      if (!sh.state.part->over())
        sh.state.deliveries.push_back({message.message, std::move(message.gradients), message.joint,
                                       std::move(message.requires_grad), std::move(message.shapes)});
      if (!message.place.empty()) sh.state.terms->place = std::move(message.place);
      auto steps = sh.state.part->gradients(message.message, std::move(message.carried));
      if (steps.failure) sh.state.deliveries.pop_back();
      sh.act(std::move(steps));
    },
    [=](participant_quiet& message) {
      pass_shell sh(self);
      if (sh.state.lead) sh.act(sh.state.lead->quiet(std::move(message.carried)));
    },
    [=](participant_failed& message) {
      pass_shell sh(self);
      if (sh.state.lead)
        sh.lead_failed(message.from, static_cast<errc>(message.code), std::move(message.text));
      else
        sh.report(std::move(message));  // from a node that can't reach the initiator
    },
    [=](discover& message) -> discovered_promise {
      pass_shell sh(self);
      auto promise = self->template make_response_promise<discovered_promise>();
      if (sh.state.part->over()) {
        promise.deliver(make_error(errc::pass_aborted, "the pass is over on node '" + sh.here.name() + "'"));
        return promise;
      }
      sh.state.discover_promises.push_back(promise);
      sh.state.walk_sends.insert(sh.state.walk_sends.end(), message.sends.begin(), message.sends.end());
      sh.act(sh.state.part->walk(protocol::walk_from::sends));
      return promise;
    },
    [=](prune& message) {
      pass_shell sh(self);
      sh.act(sh.state.part->prune({message.live.begin(), message.live.end()}, std::move(message.carried)));
    },
    [=](abort_pass&) -> aborted_promise {
      pass_shell sh(self);
      auto promise = self->template make_response_promise<aborted_promise>();
      sh.state.abort_promises.push_back(promise);
      sh.terms.stop->store(true);
      sh.act(sh.state.part->abort());
      return promise;
    },
    [=](contracts::burst_ptr& work) { pass_shell(self).burst_returned(*work); },
    [=](contracts::peer_down& news) {
      pass_shell sh(self);
      auto text = "node '" + news.who.name + "' went down during backward (" + news.reason + ")";
      if (sh.state.lead && sh.terms.outcome->take_over()) sh.act(sh.state.lead->peer_down(news.who.id, text));
      if (sh.state.sent_to.contains(news.who.id) && !sh.state.part->over())
        sh.fail(errc::peer_down, text);
      else if (sh.state.part->away())
        sh.state.down.emplace(news.who.id, text);  // what the burst has sent is known when it is back
    },
    [=](support::take_atom) -> table_promise {
      auto promise = self->template make_response_promise<table_promise>();
      self->state.take_promise = promise;
      if (!self->state.part->away()) pass_shell(self).hand_out_gradients();
      return promise;
    },
    [=](support::deadline_atom) {
      pass_shell sh(self);
      if (!sh.state.lead || sh.state.lead->complete() || !sh.terms.outcome->take_over()) return;
      if (sh.state.lead->aborting()) return sh.act(sh.state.lead->abort_timeout());
      sh.lead_failed(sh.here.id(), errc::deadline_passed,
                     "backward was not complete within its deadline of " + support::seconds_text(sh.terms.deadline) +
                       "; not known to be done with it: " + sh.names_of(sh.state.lead->unsettled()));
    },
    [=](support::close_atom) {
      pass_shell sh(self);
      sh.tell_senders();
      sh.state.closed = true;
      sh.terms.stop->store(true);
      if (sh.state.lead && !sh.state.lead->complete())
        sh.terms.outcome->result().set_error(error(errc::unknown_context, "the context was released during backward"));
      if (sh.state.part->away()) return;
      sh.drop_buffers();
      self->quit();
    },
  };
}

contracts::graph_task_actor spawn_graph_task(services::node_services& here, pass_terms_ptr terms) {
  using state = graph_task_state;
  if (here.networked())
    return here.system().middleman().spawn_broker<caf::lazy_init>(
      make_graph_task<contracts::graph_task_actor::stateful_broker_pointer<state>>, &here, std::move(terms));
  return here.system().spawn(make_graph_task<contracts::graph_task_actor::stateful_pointer<state>>, &here, std::move(terms));
}

}  // namespace troupe::passes
