// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/context_actor.hpp>

#include <chrono>
#include <memory>
#include <tuple>
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
#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/passes/graph_task_actor.hpp>
#include <troupe/actors/passes/pass_terms.hpp>
#include <troupe/actors/services/garbage.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/node_network.hpp>
#include <troupe/actors/services/timed_request.hpp>
#include <troupe/actors/support/broker_mailbox.hpp>
#include <troupe/actors/support/logger_release.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::passes {

namespace {

constexpr std::chrono::milliseconds gathering_deadline{60'000};

}  // namespace

context_desk::context_desk(support::desk_actor self, const context_services* here, contracts::context_record_ptr record)
    : self_(self),
      here_(*here),
      record_(std::move(record)),
      guard_(here->network.peers.own->add(self.get()->id(), gate::own_actors::kind::inner)) {}

context_desk::~context_desk() { here_.deadlines.call_off(expiry_); }

/// Calls `next` with the gradients of all completed passes. The call is made at once if these gradients are gathered already.
void context_desk::with_gradients(reader next) {
  readers_.push_back(std::move(next));
  if (!merging_) gather();
}

/// Gathers the gradients of the oldest completed pass whose gradients are not gathered yet, then those of the next such pass.
/// When no such pass is left, calls the readers.
void context_desk::gather() {
  auto task = lost_ ? contracts::graph_task_actor{} : record_->next_to_gather();
  merging_ = task != nullptr;
  if (!task) {
    for (auto& next : std::exchange(readers_, {})) next({gathered_, lost_});
    return;
  }
  auto go_on = [this, task](const contracts::table_ptr& table) {
    self_.send(task, support::close_atom::value);
    merge(table);
  };
  auto give_up = [this, task](const caf::error& reason) {
    self_.send(task, support::close_atom::value);
    lose(reason);
  };
  services::timed_request(self_, here_, task, gathering_deadline, expiry_, support::gradients_atom::value).then(go_on, give_up);
}

void context_desk::merge(const contracts::table_ptr& table) {
  here_.deadlines.call_off(expiry_);
  if (!table || !gathered_) {
    if (table) gathered_ = table;
    return gather();
  }
  auto summed = [this](const contracts::gradients_ptr& sum) {
    here_.deadlines.call_off(expiry_);
    gathered_ = sum;
    gather();
  };
  services::timed_request(self_, here_, here_.actors.continuation, gathering_deadline, expiry_,
                          contracts::merge_gradients{std::exchange(gathered_, nullptr), table})
    .then(summed, [this](const caf::error& reason) { lose(reason); });
}

void context_desk::lose(const caf::error& reason) {
  here_.deadlines.call_off(expiry_);
  auto why = to_exception(reason, "the gradients of a pass on node '" + here_.self.name() + "' are lost");
  here_.log.warn("passes", [&] { return "context " + to_string(record_->id()) + ": " + why.what(); });
  lost_ = make_error(why.code(), why.what());
  gather();
}

context_desk::promise context_desk::promise_gradients() {
  auto result = self_.response_promise<contracts::gradients_ptr>();
  with_gradients([result](const gathering& gathered) mutable {
    gathered.failure ? result.deliver(gathered.failure) : result.deliver(gathered.all);
  });
  return result;
}

context_desk::promise context_desk::promise_gradients_after(const contracts::pass_history& known) {
  try {
    for (const auto& task : record_->learn(known.completed, known.failed)) self_.send(task, support::close_atom::value);
  } catch (const error& too_much) {
    auto result = self_.response_promise<contracts::gradients_ptr>();
    result.deliver(make_error(too_much.code(), too_much.what()));
    return result;
  }
  return promise_gradients();
}

void context_desk::fulfil(contracts::gradients_wish_ptr wish) {
  with_gradients([wish = std::move(wish)](const gathering& gathered) {
    gathered.failure ? wish->result.set_error(to_exception(gathered.failure)) : wish->result.set_value(gathered.all);
  });
}

void context_desk::backward(const contracts::backward_job_ptr& job) {
  with_gradients([this, job](const gathering& gathered) {
    if (gathered.failure) return refuse_pass(here_.log, *record_, *job, to_exception(gathered.failure));
    auto start = record_->begin(false);
    if (!start) return refuse_pass(here_.log, *record_, *job, pass_is_running());
    const auto number = start->number;
    auto task = spawn_graph_task(here_, make_terms(here_, record_, *job, std::move(*start)));
    record_->set_task(number, task);
    self_.send(task, support::start_atom::value);
  });
}

void context_desk::release() {
  const auto id = record_->id();
  // Only the opener releases the context on its peers. Another node sends context_joined to the nodes that it called: they then
  // announce themselves to the opener, which may not know them.
  const bool is_opener = id.node == here_.self.id();
  // The messages have no sender, because no answer is needed, and so the other nodes make no proxy for this actor.
  for (auto who : record_->members.peers())
    if (auto gateway = here_.directory.gateway(who); gateway && is_opener)
      caf::anon_send(gateway, release_context{id});
    else if (gateway && who != id.node)
      caf::anon_send(gateway, context_joined{id, here_.self.id()});
  const auto why = make_error(errc::unknown_context, "node '" + here_.self.name() + "' has released " + to_string(id));
  for (auto& next : std::exchange(readers_, {})) next({nullptr, why});
  auto remains = record_->release();
  for (const auto& task : remains.tasks) self_.send(task, support::close_atom::value);
  using rest = std::tuple<std::vector<engine::send_source>, contracts::gradients_ptr, std::shared_ptr<void>>;
  here_.garbage.add(std::make_shared<rest>(std::move(remains.sends), std::move(gathered_), record_->guests.take_whole()));
  self_.quit();
}

namespace {

/// The desk is made when the first message comes, because most contexts are idle and a program may have many contexts.
struct context_state {
  static inline const char* name = "context";
  std::unique_ptr<context_desk> desk;
};

contracts::context_actor::behavior_type handlers(context_desk* desk) {
  return {
    [=](contracts::backward_job_ptr& job) { desk->backward(job); },
    [=](support::gradients_atom) { return desk->promise_gradients(); },
    [=](contracts::gradients_wish_ptr& wish) { desk->fulfil(std::move(wish)); },
    [=](const contracts::pass_history_ptr& known) { return desk->promise_gradients_after(*known); },
    [=](support::close_atom) { desk->release(); },
  };
}

/// The actor is made of a class to save memory: most contexts are idle. For an actor made of a function, CAF would store the
/// arguments in two more blocks of memory until the first message comes.
using context_broker = std::remove_pointer_t<contracts::context_actor::stateful_broker_pointer<context_state>>;
class context_host final : public context_broker {
 public:
  context_host(caf::actor_config& config, const context_services* here, contracts::context_record_ptr record)
      : context_broker(config),
        here_(here),
        record_(std::move(record)),
        gateway_(caf::actor_cast<caf::actor>(here->actors.gateway)) {}

 protected:
  behavior_type make_behavior() override {
    support::close_mailbox_at_exit(this);
    support::live_as_long_as(this, std::exchange(gateway_, nullptr));
    auto& desk = state.desk = std::make_unique<context_desk>(this, here_, std::move(record_));
    return handlers(desk.get());
  }

 private:
  const context_services* here_;
  contracts::context_record_ptr record_;
  caf::actor gateway_;  // this actor ends when the gateway ends; null after the first message
};

}  // namespace

contracts::context_actor spawn_context(const context_services* here, contracts::context_record_ptr record) {
  const support::logger_release lets_go;
  caf::actor_config config{&here->actors.system->middleman().backend()};
  return here->actors.system->spawn_class<context_host, caf::lazy_init>(config, here, std::move(record));
}

}  // namespace troupe::passes
