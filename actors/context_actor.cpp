// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/context_actor.hpp>

#include <utility>

#include <caf/io/middleman.hpp>
#include <caf/io/typed_broker.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/broker_mailbox.hpp>
#include <troupe/actors/company.hpp>
#include <troupe/actors/cpu_continuation.hpp>
#include <troupe/actors/peer_actor.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe {

namespace {

constexpr std::chrono::milliseconds release_deadline{5000};
constexpr std::chrono::milliseconds take_deadline{60'000};

/// What the handlers share; made anew for each message, it holds nothing of its own.
template <class Self>
struct shell {
  Self self;
  context_state& state;
  company& here;

  explicit shell(Self s) : self(s), state(s->state), here(*s->state.here) {}

  void call(outgoing_call_ptr job) {
    auto face = here.directory().face(job->to);
    if (!face) return here.fail_call(*job, error(errc::peer_down, "it is down"));
    if (job->send) state.sends.push_back({job->send, job->rank});
    if (job->to != here.id()) state.peers.insert(job->to);
    job->request.completed = state.completed;
    job->request.failed.assign(state.failed.begin(), state.failed.end());
    state.calls.insert(job);
    auto answered = [s = self, job](call_result& result) {
      shell sh(s);
      sh.state.calls.erase(job);
      sh.state.peers.insert(result.participants.begin(), result.participants.end());
      sh.state.peers.erase(sh.here.id());
      sh.here.finish_call(*job, result);
    };
    auto failed = [s = self, job](const caf::error& reason) {
      shell sh(s);
      if (sh.state.calls.erase(job) > 0) sh.here.fail_call(*job, to_exception(reason));
    };
    self->request(caf::actor_cast<peer_actor>(face), job->deadline, job->request).then(answered, failed);
    job->request.payload.tensors.clear();
  }

  /// Calls `next` with the gradients of all completed passes, at once if they are gathered already.
  void with_gradients(std::function<void(const gathering&)> next) {
    state.readers.push_back(std::move(next));
    if (!state.merging) gather();
  }

  /// Takes the gradients of the oldest completed pass that still has them, then of the next one, then answers the readers.
  void gather() {
    auto oldest = state.tasks.begin();
    if (state.lost || oldest == state.tasks.end() || state.completed < oldest->first) {
      state.merging = false;
      for (auto& next : std::exchange(state.readers, {})) next({state.gathered, state.lost});
      return;
    }
    state.merging = true;
    auto task = oldest->second;
    state.tasks.erase(oldest);
    auto go_on = [s = self, task](const table_ptr& table) {
      s->send(task, close_atom::value);
      shell(s).merge(table);
    };
    auto give_up = [s = self, task](const caf::error& reason) {
      s->send(task, close_atom::value);
      shell(s).lose(reason);
    };
    self->request(task, take_deadline, take_atom::value).then(go_on, give_up);
  }

  void merge(const table_ptr& table) {
    if (!table || !state.gathered) {
      if (table) state.gathered = table;
      return gather();
    }
    auto summed = [s = self](const gradients_ptr& sum) {
      s->state.gathered = sum;
      shell(s).gather();
    };
    self->request(here.continuation(), take_deadline, merge_atom::value, state.gathered, table)
      .then(summed, [s = self](const caf::error& reason) { shell(s).lose(reason); });
  }

  void lose(const caf::error& reason) {
    auto why = to_exception(reason, "the gradients of a pass on node '" + here.name() + "' are lost");
    state.lost = make_error(why.code(), why.what());
    gather();
  }

  void run(call_request& request, caf::typed_response_promise<call_result> promise) {
    for (const pass_number number : request.failed) forget(number);
    if (state.completed < request.completed) state.completed = request.completed;
    auto job = std::make_shared<incoming_call>();
    job->request = std::move(request);
    job->promise = std::move(promise);
    job->owner = caf::actor_cast<caf::strong_actor_ptr>(self);
    job->arrived_ns = steady_ns();
    with_gradients([s = self, job](const gathering& gathered) {
      if (gathered.failure) {
        job->promise.deliver(gathered.failure);
        return;
      }
      job->gradients = gathered.all;
      s->send(shell(s).here.face(), job);
    });
  }

  /// Pass `number` failed: what it left on this node counts nowhere.
  void forget(pass_number number) {
    state.failed.insert(number);
    if (auto task = state.tasks.extract(number)) self->send(task.mapped(), close_atom::value);
  }

  void call_done(incoming_call& job) {
    if (job.failure) {
      job.promise.deliver(make_error(job.failure->code(), job.failure->what()));
      return;
    }
    if (job.send) state.sends.push_back({std::move(job.send), job.request.payload.message.number});
    job.result.participants.assign(state.peers.begin(), state.peers.end());
    job.promise.deliver(std::move(job.result));
  }

  /// Makes pass `number` the current one. The one before it is over.
  void begin(pass_number number, backward_job* job, bool keep_graph, bool create_graph) {
    auto terms = std::make_shared<pass_terms>();
    terms->context = state.id;
    terms->pass = number;
    terms->keep_graph = keep_graph;
    terms->create_graph = create_graph;
    terms->owner = caf::actor_cast<caf::strong_actor_ptr>(self);
    terms->task = std::make_unique<pass_task>();
    auto& settings = terms->task->settings;
    settings.sends = state.sends;
    settings.keep_graph = keep_graph;
    settings.create_graph = create_graph;
    for (std::size_t i = 0; i < state.sends.size(); ++i) terms->task->send_index.emplace(state.sends[i].function->message, i);
    if (job != nullptr) {
      settings.roots = std::move(job->roots);
      settings.root_gradients = std::move(job->gradients);
      terms->initiates = true;
      terms->participants = state.peers;
      terms->deadline = job->deadline;
      terms->result = job->result;
    }
    state.current = number;
    state.tasks.emplace(number, spawn_graph_task(here, std::move(terms)));
  }

  void backward(backward_job_ptr job) {
    if (state.running)
      return job->result.set_error(error(errc::misuse,
                                         "a backward pass of this context is still running: wait for its future "
                                         "before starting another"));
    state.running = true;
    with_gradients([s = self, job](const gathering& gathered) {
      shell sh(s);
      if (gathered.failure) {
        sh.state.running = false;
        return job->result.set_error(to_exception(gathered.failure));
      }
      sh.begin(pass_number{sh.state.current.value + 1}, job.get(), job->keep_graph, false);
      s->send(sh.state.tasks.at(sh.state.current), start_atom::value);
    });
  }

  /// The graph task for a message of pass `number` from another node, made if the pass is new here; null if it is over here.
  graph_task_actor task_of(pass_number number, bool keep_graph, bool create_graph) {
    if (state.current < number) begin(number, nullptr, keep_graph, create_graph);
    auto found = state.tasks.find(number);
    return found == state.tasks.end() ? graph_task_actor{} : found->second;
  }

  graph_task_actor known_task(pass_number number) {
    auto found = state.tasks.find(number);
    return found == state.tasks.end() ? graph_task_actor{} : found->second;
  }

  void fail_calls_to(node_id who, const std::string& reason) {
    std::vector<outgoing_call_ptr> lost;
    for (const auto& job : state.calls)
      if (job->to == who) lost.push_back(job);
    for (const auto& job : lost) {
      state.calls.erase(job);
      here.fail_call(*job, error(errc::peer_down, reason));
    }
  }

  void release() {
    for (auto who : state.peers)
      if (auto face = here.directory().face(who))
        self->request(caf::actor_cast<peer_actor>(face), release_deadline, release_context{state.id})
          .then([](const context_released&) {}, [](const caf::error&) {});
    for (auto& [number, task] : std::exchange(state.tasks, {})) self->send(task, close_atom::value);
    for (const auto& job : std::exchange(state.calls, {}))
      here.fail_call(*job, error(errc::unknown_context, "its context was released before it was answered"));
    self->send(here.continuation(), garbage_ptr{std::make_shared<std::vector<engine::send_source>>(std::move(state.sends))});
    self->send(here.continuation(), garbage_ptr{std::const_pointer_cast<engine::gradient_table>(std::move(state.gathered))});
    self->quit();
  }
};

}  // namespace

context_state::~context_state() {
  for (const auto& job : std::exchange(calls, {}))
    here->fail_call(*job, error(errc::stopping, "this node stopped before it was answered"));
}

template <class Self>
context_actor::behavior_type make_context(Self self, company* here, context_id id) {
  close_mailbox_at_exit(self);
  self->link_to(here->face());
  self->state.here = here;
  self->state.id = id;
  using result_promise = caf::typed_response_promise<call_result>;
  using gradients_promise = caf::typed_response_promise<gradients_ptr>;
  return {
    [=](outgoing_call_ptr& job) { shell(self).call(std::move(job)); },
    [=](outgoing_joint_ptr& joint) {
      auto& state = self->state;
      state.sends.push_back(std::move(joint->send));
      if (joint->to != shell(self).here.id()) state.peers.insert(joint->to);
    },
    [=](backward_job_ptr& job) { shell(self).backward(std::move(job)); },
    [=](take_atom) -> gradients_promise {
      auto promise = self->template make_response_promise<gradients_promise>();
      shell(self).with_gradients([promise](const gathering& gathered) mutable {
        gathered.failure ? promise.deliver(gathered.failure) : promise.deliver(gathered.all);
      });
      return promise;
    },
    [=](incoming_call_ptr& job) { shell(self).call_done(*job); },
    [=](ended_atom, pass_number number, bool succeeded) {
      shell sh(self);
      sh.state.running = false;
      if (succeeded)
        sh.state.completed = std::max(sh.state.completed, number);
      else
        sh.forget(number);
    },
    [=](peer_down& news) {
      shell sh(self);
      sh.state.peers.erase(news.who.id);
      sh.fail_calls_to(news.who.id, "it went down (" + news.reason + ")");
      for (const auto& [number, task] : sh.state.tasks) self->send(task, news);
    },
    [=](close_atom) { shell(self).release(); },
    [=](call_request& request) -> result_promise {
      auto promise = self->template make_response_promise<result_promise>();
      shell(self).run(request, promise);
      return promise;
    },
    [=](propagate_gradients& message) {
      if (auto task = shell(self).task_of(message.pass, message.keep_graph, message.create_graph))
        self->send(task, std::move(message));
    },
    [=](participant_quiet& message) {
      if (auto task = shell(self).known_task(message.pass)) self->send(task, std::move(message));
    },
    [=](participant_failed& message) {
      if (auto task = shell(self).known_task(message.pass)) self->send(task, std::move(message));
    },
    [=](discover& message) -> caf::result<discovered> {
      if (auto task = shell(self).task_of(message.pass, message.keep_graph, message.create_graph))
        return self->delegate(task, std::move(message));
      return make_error(errc::pass_aborted, "the pass is over on this node");
    },
    [=](prune& message) {
      if (auto task = shell(self).task_of(message.pass, message.keep_graph, message.create_graph))
        self->send(task, std::move(message));
    },
    [=](abort_pass& message) -> caf::result<pass_aborted> {
      shell sh(self);
      sh.state.current = std::max(sh.state.current, message.pass);
      sh.state.failed.insert(message.pass);
      if (auto task = sh.state.tasks.extract(message.pass)) return self->delegate(task.mapped(), std::move(message));
      return pass_aborted{message.context, message.pass, sh.here.id(), {}};
    },
    [=](release_context& message) -> context_released {
      shell sh(self);
      context_released answer{message.context, sh.here.id()};
      sh.release();
      return answer;
    },
  };
}

context_actor spawn_context(company& here, context_id id) {
  using state = context_state;
  if (here.networked())
    return here.system().middleman().spawn_broker(make_context<context_actor::stateful_broker_pointer<state>>, &here, id);
  return here.system().spawn(make_context<context_actor::stateful_pointer<state>>, &here, id);
}

}  // namespace troupe
