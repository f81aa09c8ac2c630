// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/context_actor.hpp>

#include <type_traits>
#include <utility>

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_config.hpp>
#include <caf/actor_system.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/typed_broker.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/contracts/graph_task.hpp>
#include <troupe/actors/passes/graph_task_actor.hpp>
#include <troupe/actors/passes/pass_terms.hpp>
#include <troupe/actors/services/node_services.hpp>
#include <troupe/actors/services/timed_request.hpp>
#include <troupe/actors/support/broker_mailbox.hpp>
#include <troupe/actors/support/logger_release.hpp>
#include <troupe/actors/support/shared_life.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::passes {

namespace {

constexpr std::chrono::milliseconds gathering_deadline{60'000};

/// What the handlers share. A shell is made for each message and works on the state of the actor.
template <class Self>
struct context_shell {
  Self self;
  context_work& work;
  context_record& record;
  services::node_services& here;

  explicit context_shell(Self s) : self(s), work(*s->state.work), record(*s->state.record), here(work.here) {}

  /// Calls `next` with the gradients of all completed passes. The call is made at once if these gradients are gathered already.
  void with_gradients(std::function<void(const gathering&)> next) {
    work.readers.push_back(std::move(next));
    if (!work.merging) gather();
  }

  /// Gathers the gradients of the oldest completed pass whose gradients are not gathered yet, then those of the next such pass.
  /// At the end answers the readers.
  void gather() {
    auto task = work.lost ? contracts::graph_task_actor{} : record.next_to_gather();
    work.merging = task != nullptr;
    if (!task) {
      for (auto& next : std::exchange(work.readers, {})) next({work.gathered, work.lost});
      return;
    }
    auto go_on = [s = self, task](const contracts::table_ptr& table) {
      s->send(task, support::close_atom::value);
      context_shell(s).merge(table);
    };
    auto give_up = [s = self, task](const caf::error& reason) {
      s->send(task, support::close_atom::value);
      context_shell(s).lose(reason);
    };
    services::timed_request(self, here, task, gathering_deadline, work.expiry, support::gradients_atom::value)
      .then(go_on, give_up);
  }

  void merge(const contracts::table_ptr& table) {
    here.deadlines().call_off(work.expiry);
    if (!table || !work.gathered) {
      if (table) work.gathered = table;
      return gather();
    }
    auto summed = [s = self](const contracts::gradients_ptr& sum) {
      context_shell sh(s);
      sh.here.deadlines().call_off(sh.work.expiry);
      sh.work.gathered = sum;
      sh.gather();
    };
    services::timed_request(self, here, here.continuation(), gathering_deadline, work.expiry, support::merge_atom::value,
                            std::exchange(work.gathered, nullptr), table)
      .then(summed, [s = self](const caf::error& reason) { context_shell(s).lose(reason); });
  }

  void lose(const caf::error& reason) {
    here.deadlines().call_off(work.expiry);
    auto why = to_exception(reason, "the gradients of a pass on node '" + here.name() + "' are lost");
    here.log().warn("passes", [&] { return "context " + to_string(record.id()) + ": " + why.what(); });
    work.lost = make_error(why.code(), why.what());
    gather();
  }

  caf::typed_response_promise<contracts::gradients_ptr> promise_gradients() {
    auto promise = self->template make_response_promise<caf::typed_response_promise<contracts::gradients_ptr>>();
    with_gradients([promise](const gathering& gathered) mutable {
      gathered.failure ? promise.deliver(gathered.failure) : promise.deliver(gathered.all);
    });
    return promise;
  }

  caf::typed_response_promise<contracts::gradients_ptr> promise_gradients_after(const contracts::pass_history& known) {
    try {
      for (const auto& task : record.learn(known.completed, known.failed)) self->send(task, support::close_atom::value);
    } catch (const error& too_much) {
      auto promise = self->template make_response_promise<caf::typed_response_promise<contracts::gradients_ptr>>();
      promise.deliver(make_error(too_much.code(), too_much.what()));
      return promise;
    }
    return promise_gradients();
  }

  void fulfil(contracts::gradients_wish_ptr wish) {
    with_gradients([wish = std::move(wish)](const gathering& gathered) {
      gathered.failure ? wish->result.set_error(to_exception(gathered.failure)) : wish->result.set_value(gathered.all);
    });
  }

  void backward(const contracts::backward_job_ptr& job) {
    with_gradients([s = self, job](const gathering& gathered) {
      context_shell sh(s);
      if (gathered.failure) return refuse_pass(sh.here, sh.record, *job, to_exception(gathered.failure));
      auto start = sh.record.begin(false);
      if (!start) return refuse_pass(sh.here, sh.record, *job, pass_is_running());
      const auto number = start->number;
      auto task = spawn_graph_task(sh.here, make_terms(sh.here, s->state.record, *job, std::move(*start)));
      sh.record.set_task(number, task);
      s->send(task, support::start_atom::value);
    });
  }

  void release() {
    const auto id = record.id();
    // Only the opener ends a context. Another node has news for those that it called: they ask the opener, which may not know them.
    const bool is_opener = id.node == here.id();
    // The messages have no sender: no answer is needed, and the other nodes make no proxy for this actor.
    for (auto who : record.peers())
      if (auto gateway = here.directory().gateway(who); gateway && is_opener)
        caf::anon_send(gateway, release_context{id});
      else if (gateway && who != id.node)
        caf::anon_send(gateway, context_joined{id, here.id()});
    const auto why = make_error(errc::unknown_context, "node '" + here.name() + "' has released " + to_string(id));
    for (auto& next : std::exchange(work.readers, {})) next({nullptr, why});
    auto remains = record.release();
    for (const auto& task : remains.tasks) self->send(task, support::close_atom::value);
    using rest = std::pair<std::vector<engine::send_source>, contracts::gradients_ptr>;
    here.discard(std::make_shared<rest>(std::move(remains.sends), std::move(work.gathered)));
    self->quit();
  }
};

}  // namespace

context_work::~context_work() { here.deadlines().call_off(expiry); }

template <class Self>
contracts::context_actor::behavior_type make_context(Self self) {
  support::close_mailbox_at_exit(self);
  auto& state = self->state;
  support::live_as_long_as(self, std::exchange(state.gateway, nullptr));
  state.work = std::make_unique<context_work>(*state.here);
  state.work->guard = state.here->guard(self->id(), network::own_actors::kind::inner);
  return {
    [=](contracts::backward_job_ptr& job) { context_shell(self).backward(job); },
    [=](support::gradients_atom) { return context_shell(self).promise_gradients(); },
    [=](contracts::gradients_wish_ptr& wish) { context_shell(self).fulfil(std::move(wish)); },
    [=](const contracts::pass_history_ptr& known) { return context_shell(self).promise_gradients_after(*known); },
    [=](support::close_atom) { context_shell(self).release(); },
  };
}

/// A class, because most contexts are idle: until the first message comes CAF keeps the arguments of a function in two more blocks of
/// memory.
template <class Actor>
class context_host final : public Actor {
 public:
  context_host(caf::actor_config& config, services::node_services* here, contracts::context_record_ptr record) : Actor(config) {
    this->state.here = here;
    this->state.record = std::move(record);
    this->state.gateway = caf::actor_cast<caf::actor>(here->gateway());
  }

 protected:
  typename Actor::behavior_type make_behavior() override { return make_context(static_cast<Actor*>(this)); }
};

contracts::context_actor spawn_context(services::node_services& here, contracts::context_record_ptr record) {
  const support::logger_release lets_go;
  using on_network_thread = std::remove_pointer_t<contracts::context_actor::stateful_broker_pointer<context_state>>;
  using on_scheduler = std::remove_pointer_t<contracts::context_actor::stateful_pointer<context_state>>;
  if (!here.networked()) return here.system().spawn<context_host<on_scheduler>>(&here, std::move(record));
  caf::actor_config config{&here.system().middleman().backend()};
  return here.system().spawn_class<context_host<on_network_thread>, caf::lazy_init>(config, &here, std::move(record));
}

}  // namespace troupe::passes
