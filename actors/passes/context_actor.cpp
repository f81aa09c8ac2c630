// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/context_actor.hpp>

#include <utility>

#include <caf/io/middleman.hpp>
#include <caf/io/typed_broker.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/contracts/peer.hpp>
#include <troupe/actors/passes/graph_task_actor.hpp>
#include <troupe/actors/passes/pass_terms.hpp>
#include <troupe/actors/services/node_services.hpp>
#include <troupe/actors/services/timed_request.hpp>
#include <troupe/actors/support/broker_mailbox.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::passes {

namespace {

constexpr std::chrono::milliseconds take_deadline{60'000};

/// What the handlers share; made anew for each message, it holds nothing of its own.
template <class Self>
struct context_shell {
  Self self;
  context_state& state;
  services::node_services& here;

  explicit context_shell(Self s) : self(s), state(s->state), here(*s->state.here) {
    for (auto& [number, task] : state.record->take_over())
      state.tasks.emplace(number, caf::actor_cast<contracts::graph_task_actor>(std::move(task)));
  }

  /// Calls `next` with the gradients of all completed passes, at once if they are gathered already.
  void with_gradients(std::function<void(const gathering&)> next) {
    state.readers.push_back(std::move(next));
    if (!state.merging) gather();
  }

  /// Takes the gradients of the oldest completed pass that still has them, then of the next one, then answers the readers.
  void gather() {
    auto oldest = state.tasks.begin();
    if (state.lost || oldest == state.tasks.end() || state.record->completed() < oldest->first) {
      state.merging = false;
      if (state.tasks.empty()) state.record->gathered();
      for (auto& next : std::exchange(state.readers, {})) next({state.gathered, state.lost});
      return;
    }
    state.merging = true;
    auto task = oldest->second;
    state.tasks.erase(oldest);
    auto go_on = [s = self, task](const contracts::table_ptr& table) {
      s->send(task, support::close_atom::value);
      context_shell(s).merge(table);
    };
    auto give_up = [s = self, task](const caf::error& reason) {
      s->send(task, support::close_atom::value);
      context_shell(s).lose(reason);
    };
    services::timed_request(self, here, task, take_deadline, state.expiry, support::take_atom::value).then(go_on, give_up);
  }

  void merge(const contracts::table_ptr& table) {
    here.deadlines().call_off(state.expiry);
    if (!table || !state.gathered) {
      if (table) state.gathered = table;
      return gather();
    }
    auto summed = [s = self](const contracts::gradients_ptr& sum) {
      context_shell sh(s);
      sh.here.deadlines().call_off(sh.state.expiry);
      sh.state.gathered = sum;
      sh.gather();
    };
    services::timed_request(self, here, here.continuation(), take_deadline, state.expiry, support::merge_atom::value,
                            std::exchange(state.gathered, nullptr), table)
      .then(summed, [s = self](const caf::error& reason) { context_shell(s).lose(reason); });
  }

  void lose(const caf::error& reason) {
    here.deadlines().call_off(state.expiry);
    auto why = to_exception(reason, "the gradients of a pass on node '" + here.name() + "' are lost");
    state.lost = make_error(why.code(), why.what());
    gather();
  }

  void learn(pass_number completed, const std::vector<pass_number>& failed) {
    for (const pass_number number : failed) forget(number);
    state.record->complete(completed);
  }

  caf::typed_response_promise<contracts::gradients_ptr> promise_gradients() {
    auto promise = self->template make_response_promise<caf::typed_response_promise<contracts::gradients_ptr>>();
    with_gradients([promise](const gathering& gathered) mutable {
      gathered.failure ? promise.deliver(gathered.failure) : promise.deliver(gathered.all);
    });
    return promise;
  }

  /// Gives a call the gradients before it runs.
  void prepare(contracts::incoming_call_ptr job) {
    learn(job->request.completed, job->request.failed);
    with_gradients([s = self, job](const gathering& gathered) {
      if (gathered.failure) {
        job->failure = to_exception(gathered.failure);
        job->owner = nullptr;
      }
      job->gradients = gathered.all;
      s->send(context_shell(s).here.face(), job);
    });
  }

  /// Pass `number` failed: what it left on this node counts nowhere.
  void forget(pass_number number) {
    state.record->fail(number);
    if (auto task = state.tasks.extract(number)) self->send(task.mapped(), support::close_atom::value);
  }

  void backward(const contracts::backward_job_ptr& job) {
    with_gradients([s = self, job](const gathering& gathered) {
      context_shell sh(s);
      if (gathered.failure) return job->result.set_error(to_exception(gathered.failure));
      auto start = sh.state.record->begin(false);
      if (!start) return job->result.set_error(pass_is_running());
      const auto number = start->number;
      auto terms = make_terms(sh.state.record, caf::actor_cast<caf::strong_actor_ptr>(s), *job, std::move(*start));
      auto task = spawn_graph_task(sh.here, std::move(terms));
      sh.state.tasks.emplace(number, task);
      s->send(task, support::start_atom::value);
    });
  }

  /// The graph task for a message of pass `number` from another node, made if the pass is new here; null if it is over here.
  contracts::graph_task_actor task_of(pass_number number, bool keep_graph, bool create_graph) {
    if (auto start = state.record->follow(number)) {
      auto owner = caf::actor_cast<caf::strong_actor_ptr>(self);
      auto terms = make_terms(state.record, std::move(owner), std::move(*start), keep_graph, create_graph);
      state.tasks.emplace(number, spawn_graph_task(here, std::move(terms)));
    }
    return known_task(number);
  }

  contracts::graph_task_actor known_task(pass_number number) {
    auto found = state.tasks.find(number);
    return found == state.tasks.end() ? contracts::graph_task_actor{} : found->second;
  }

  /// Tells the node that opened the context that this one holds a part of it.
  void announce() {
    if (auto face = here.directory().face(state.record->id().node))
      caf::anon_send(caf::actor_cast<contracts::peer_actor>(face), context_joined{state.record->id(), here.id()});
  }

  void release() {
    const auto id = state.record->id();
    const bool cut_off = !here.directory().face(id.node);  // for this node: the others may go on, and say so themselves
    // No answer is waited for; and who sends nothing by name leaves no trace in the other nodes' proxies.
    for (auto who : state.record->peers())
      if (auto face = caf::actor_cast<contracts::peer_actor>(here.directory().face(who)); face && cut_off)
        caf::anon_send(face, context_joined{id, here.id()});
      else if (face)
        caf::anon_send(face, release_context{id});
    const auto why = make_error(errc::unknown_context, "node '" + here.name() + "' has released " + to_string(id));
    for (auto& next : std::exchange(state.readers, {})) next({nullptr, why});
    for (auto& [number, task] : std::exchange(state.tasks, {})) self->send(task, support::close_atom::value);
    using rest = std::pair<std::vector<engine::send_source>, contracts::gradients_ptr>;
    here.discard(std::make_shared<rest>(state.record->release(), std::move(state.gathered)));
    self->quit();
  }
};

}  // namespace

context_state::~context_state() {
  if (here != nullptr) here->deadlines().call_off(expiry);
}

template <class Self>
contracts::context_actor::behavior_type make_context(Self self, services::node_services* here,
                                                     contracts::context_record_ptr record) {
  support::close_mailbox_at_exit(self);
  self->link_to(here->face());
  self->state.here = here;
  self->state.record = std::move(record);
  return {
    [=](contracts::backward_job_ptr& job) { context_shell(self).backward(job); },
    [=](support::take_atom) { return context_shell(self).promise_gradients(); },
    [=](const contracts::pass_history_ptr& known) {
      context_shell(self).learn(known->completed, known->failed);
      return context_shell(self).promise_gradients();
    },
    [=](contracts::gradients_wish_ptr& wish) {
      context_shell(self).with_gradients([wish](const gathering& gathered) {
        gathered.failure ? wish->result.set_error(to_exception(gathered.failure)) : wish->result.set_value(gathered.all);
      });
    },
    [=](contracts::incoming_call_ptr& job) { context_shell(self).prepare(std::move(job)); },
    [=](support::failed_atom, pass_number number) { context_shell(self).forget(number); },
    [=](contracts::peer_down& news) {
      context_shell sh(self);
      sh.state.record->left(news.who.id);
      for (const auto& [number, task] : sh.state.tasks) self->send(task, news);
      if (sh.state.record->id().node != sh.here.id()) sh.announce();
    },
    [=](support::close_atom) { context_shell(self).release(); },
    [=](propagate_gradients& message) {
      if (auto task = context_shell(self).task_of(message.pass, message.keep_graph, message.create_graph))
        self->send(task, std::move(message));
    },
    [=](participant_quiet& message) {
      if (auto task = context_shell(self).known_task(message.pass)) self->send(task, std::move(message));
    },
    [=](participant_failed& message) {
      if (auto task = context_shell(self).known_task(message.pass)) self->send(task, std::move(message));
    },
    [=](discover& message) -> caf::result<discovered> {
      if (auto task = context_shell(self).task_of(message.pass, message.keep_graph, message.create_graph))
        return self->delegate(task, std::move(message));
      return make_error(errc::pass_aborted, "the pass is over on this node");
    },
    [=](prune& message) {
      if (auto task = context_shell(self).task_of(message.pass, message.keep_graph, message.create_graph))
        self->send(task, std::move(message));
    },
    [=](abort_pass& message) -> caf::result<pass_aborted> {
      context_shell sh(self);
      sh.state.record->skip(message.pass);
      if (auto task = sh.state.tasks.extract(message.pass)) return self->delegate(task.mapped(), std::move(message));
      return pass_aborted{message.context, message.pass, sh.here.id(), {}};
    },
    [=](const context_joined& news) {
      context_shell sh(self);
      if (sh.state.record->id().node != sh.here.id())
        sh.announce();
      else if (sh.here.directory().face(news.from))
        sh.state.record->joined({news.from});
    },
    [=](release_context& message) -> context_released {
      context_shell sh(self);
      context_released answer{message.context, sh.here.id()};
      sh.release();
      return answer;
    },
  };
}

contracts::context_actor spawn_context(services::node_services& here, contracts::context_record_ptr record) {
  using state = context_state;
  if (here.networked())
    return here.system().middleman().spawn_broker<caf::lazy_init>(
      make_context<contracts::context_actor::stateful_broker_pointer<state>>, &here, std::move(record));
  return here.system().spawn(make_context<contracts::context_actor::stateful_pointer<state>>, &here, std::move(record));
}

}  // namespace troupe::passes
