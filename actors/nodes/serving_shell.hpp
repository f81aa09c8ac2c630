// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <caf/duration.hpp>
#include <caf/send.hpp>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/calls/call_worker.hpp>
#include <troupe/actors/nodes/routing_shell.hpp>
#include <troupe/actors/support/refused_request.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/support/time_of_part.hpp>

namespace troupe::nodes {

// A call that leads to another call keeps a thread of its node meanwhile. Calls that lead to so many others, one inside the other, are
// taken for a recursion without an end, or for the claim of a node that is none of troupe's.
inline constexpr std::uint32_t most_depth = 4096;

/// The handlers of the `gateway` actor for calls of other nodes. A call waits for its context, for the gradients of earlier
/// passes and for a worker. Then its result is sent to the caller.
template <class Self>
struct serving_shell : gateway_shell<Self> {
  using base = gateway_shell<Self>;
  using base::base, base::here, base::parts, base::self, base::state;

  caf::typed_response_promise<call_result> serve(call_request& request) {
    here.directory().received(request.payload.message.node, request.payload.tensors, request.payload.packings);
    auto job = std::make_shared<contracts::incoming_call>();
    job->request = std::move(request);
    job->promise = self->template make_response_promise<caf::typed_response_promise<call_result>>();
    job->owner = caf::actor_cast<caf::strong_actor_ptr>(self);
    job->arrived_ns = support::steady_ns();
    job->number = ++state.last_arrival;
    job->use = here.directory().hold(job->request.payload.message.node);
    if (const auto why = why_not_taken(*job); !why.empty())
      calls::refuse_call(*job, support::refused_request(why), here);
    else
      find_context(job);
    return job->promise;
  }

  /// To be called when a worker has returned the call.
  void done(const contracts::incoming_call_ptr& job) {
    if (job->failure) {
      job->promise.deliver(make_error(job->failure->code(), job->failure->what()));
      return;
    }
    auto& payload = job->result.payload;
    const auto caller = job->request.payload.message.node;
    const auto bytes = calls::bytes_of(payload.tensors, job->result.values);
    const bool is_counted = here.networked() && caller != here.id() && here.directory().gateway(caller);
    if (is_counted) state.answers.add(caller, bytes);
    auto deliver = [s = self, job, caller, counted = is_counted ? bytes : 0] {
      job->promise.deliver(std::move(job->result));
      if (counted > 0) serving_shell(s).answer_left(caller, counted);
    };
    transfers::goes_ahead(here, caller, payload.tensors)
      ? transfers::ship(self, caller, payload.tensors, payload.ahead, deliver)
      : deliver();
  }

  /// To be called when the deadline of a call has passed. No effect if the call has started.
  void deadline_passed(const contracts::incoming_call_ptr& job) {
    if (state.waiting.contains(job)) refuse_waiting(self, {job}, calls::no_worker_in_time(*job));
  }

  void worker_is_free(const contracts::call_worker_actor& worker, std::size_t depth) {
    state.pool.idle(worker, depth);
    start_calls();
    while (const auto surplus = state.pool.surplus()) parts.workers.let_go(*surplus);
    if (here.networked() && state.pool.has_idle() && !std::exchange(state.will_tick, true)) tick_later();
  }

  void end_idle_workers() {
    for (const auto& each : state.pool.unneeded()) parts.workers.let_go(each);
    state.will_tick = state.pool.has_idle();
    if (state.will_tick) tick_later();
  }

  void worker_is_blocked() {
    state.pool.blocked();
    start_calls();
  }

 private:
  /// If a question is due (AU-2), asks whether the caller has taken its answers: by a piece of no transfer, which changes nothing.
  void answer_left(node_id caller, std::uint64_t bytes) {
    const auto left = state.answers.left(caller, bytes);
    const auto gateway = here.directory().gateway(caller);
    if (!left || !gateway) return;
    transfers::request_taken(self, caller, gateway, tensor_piece{here.id(), 0, 0, 0, {}}, [s = self, caller, left = *left] {
      serving_shell sh(s);
      sh.state.answers.taken(caller, left);
      sh.start_calls();
    });
  }

  void tick_later() { base::send_later(parts.workers.idle_time(), support::tick_atom::value); }

  /// Why the node does not take the call; empty if it does. Then the call is in the queue.
  std::string why_not_taken(contracts::incoming_call& job) {
    const auto& request = job.request;
    const auto caller = request.payload.message.node;
    if (auto why = parts.rights.why_not(request); !why.empty()) return why;
    if (request.depth >= most_depth)
      return "the call is " + std::to_string(request.depth) + " calls deep, and fewer than " + std::to_string(most_depth) +
             " are taken";
    if (!here.networked() || caller == here.id()) return {};
    job.queued = state.queued->add(caller, calls::bytes_of(request));
    if (job.queued) return {};
    return "calls of " + std::to_string(state.queued->waiting(caller)) + " bytes of the caller wait here, and no more than " +
           std::to_string(state.queued->limit()) + " may";
  }

  passes::open_context context_of(const contracts::incoming_call& job) {
    const auto& payload = job.request.payload;
    return payload.context ? routing_shell(self).find_or_open(payload.context, payload.message.node) : passes::open_context{};
  }

  /// Whether node `who` may come up here soon (GW-19).
  bool may_meet(node_id who) const {
    return who != node_id{} && who != here.id() && state.membership && !here.directory().gateway(who);
  }

  /// The context of a call opens here only while the caller and the opener are up here (GW-1, GW-5).
  void find_context(const contracts::incoming_call_ptr& job) {
    const auto context = context_of(*job);
    for (const auto who : {job->request.payload.message.node, job->request.payload.context.node})
      if (job->request.payload.context && !context.actor && may_meet(who)) return find_context_when_met(who, job);
    find_gradients(job, context);
  }

  void find_context_when_met(node_id who, const contracts::incoming_call_ptr& job) {
    hold(job);
    const auto met = [s = self, job, was_down = here.directory().is_down(who)] {
      serving_shell sh(s);
      if (!sh.is_wanted(job)) return;
      sh.find_context(job);
      // The call may be older than the time in which the nodes did not reach each other, and its context be released since.
      if (was_down) routing_shell(s).announce(job->request.payload.context);
    };
    const auto not_met = [s = self, job](const caf::error&) {
      serving_shell sh(s);
      if (sh.is_wanted(job)) sh.find_gradients(job, sh.context_of(*job));
    };
    base::meet(who, services::meeting_patience, met, not_met);
  }

  void find_gradients(const contracts::incoming_call_ptr& job, const passes::open_context& context) {
    const auto& request = job->request;
    const auto id = request.payload.context;
    if (!id) return run(job);
    if (!context.actor) {
      here.deadlines().call_off(job->expiry);
      return calls::refuse_call(*job, to_exception(base::no_context(id)), here);
    }
    job->record = context.record;
    const bool is_believed = believes(request, *context.record);  // before the call gives its caller a part
    if (is_believed && !learns_of(job, context)) return;
    context.record->called_by(request.payload.message.node);
    if (request.span != 0) context.record->profile();
    if (!is_believed && context.record->lacks(request.completed, request.failed)) return ask_opener(job, context);
    gather(job, context);
  }

  /// Whether this node takes over what the call says about the passes of its context (GW-18).
  bool believes(const call_request& request, const passes::context_record& record) const {
    const auto caller = request.payload.message.node;
    if (here.policy() == nullptr || caller == record.id().node) return true;
    const auto is_possible = [&](pass_number number) { return record.is_possible(number); };
    return parts.rights.has_part(caller, record.id()) && is_possible(request.completed) &&
           std::all_of(request.failed.begin(), request.failed.end(), is_possible);
  }

  void learn(const passes::open_context& context, const contracts::pass_history& known) {
    for (const auto& task : context.record->learn(known.completed, known.failed)) self->send(task, support::close_atom::value);
  }

  /// Takes over what the call says about passes. False: the call is refused, because it says too much.
  bool learns_of(const contracts::incoming_call_ptr& job, const passes::open_context& context) {
    try {
      learn(context, {job->request.completed, job->request.failed});
      return true;
    } catch (const error& too_much) {
      here.deadlines().call_off(job->expiry);
      calls::refuse_call(*job, support::refused_request(too_much.what()), here);
      return false;
    }
  }

  /// Asks the node that opened the context which of its passes have ended. Then the call goes on.
  void ask_opener(const contracts::incoming_call_ptr& job, const passes::open_context& context) {
    const auto context_id = context.record->id();
    const auto opener = context_id.node;
    const auto gateway = here.directory().gateway(opener);
    if (opener == here.id()) return gather(job, context);
    hold(job);
    if (!gateway) return hear_nothing_of_passes(job, context, make_error(errc::peer_down, "the opener of its context is down"));
    call_request question;
    question.function = "troupe.passes";
    question.values = {{calls::value_names::object, calls::to_attribute(context_id.number)}};
    question.payload.message = {here.next_number(), here.id()};
    question.depth = job->request.depth + 1;
    here.directory().sent(opener);
    auto asked = self->request(gateway, patience_for_part(*job), std::move(question));
    state.asked.add(opener, asked.id());
    const auto answered = [s = self, opener, number = asked.id()] { s->state.asked.answered(opener, number); };
    asked.then(
      [s = self, job, context, answered](const call_result& told) {
        answered();
        serving_shell(s).hear_of_passes(job, context, told);
      },
      [s = self, job, context, answered](const caf::error& why) {
        answered();
        serving_shell(s).hear_nothing_of_passes(job, context, why);
      });
  }

  void hear_of_passes(const contracts::incoming_call_ptr& job, const passes::open_context& context, const call_result& told) {
    try {
      learn(context, calls::history_from(told.values));
    } catch (const error& unreadable) {
      return hear_nothing_of_passes(job, context, make_error(unreadable.code(), unreadable.what()));
    }
    if (is_wanted(job)) gather(job, context);
  }

  /// The opener does not say which passes have ended, perhaps because it does not know yet that this node has a part in the context. A
  /// call can go on if no gradients wait to be gathered.
  void hear_nothing_of_passes(const contracts::incoming_call_ptr& job, const passes::open_context& context,
                              const caf::error& why) {
    if (!context.record->tasks().empty()) return get_no_gradients(job, why);
    if (is_wanted(job)) gather(job, context);
  }

  void gather(const contracts::incoming_call_ptr& job, const passes::open_context& context) {
    if (!context.record->has_gradients()) return run(job);
    hold(job);
    // No deadline: the context actor always answers (CO-7).
    self->request(context.actor, caf::infinite, support::gradients_atom::value)
      .then([s = self, job](contracts::gradients_ptr& gathered) { serving_shell(s).run_with(job, std::move(gathered)); },
            [s = self, job](const caf::error& why) { serving_shell(s).get_no_gradients(job, why); });
  }

  void run_with(const contracts::incoming_call_ptr& job, contracts::gradients_ptr gathered) {
    if (!is_wanted(job)) return;
    job->gradients = std::move(gathered);
    run(job);
  }

  void get_no_gradients(const contracts::incoming_call_ptr& job, const caf::error& why) {
    if (!is_wanted(job)) return;
    here.deadlines().call_off(job->expiry);
    calls::refuse_call(*job, to_exception(why), here);
  }

  /// Keeps the call until its context or its gradients are there.
  void hold(const contracts::incoming_call_ptr& job) {
    state.waiting.add(job);
    limit(job);
  }

  /// Ends hold(). False if the call was refused meanwhile.
  bool is_wanted(const contracts::incoming_call_ptr& job) { return state.waiting.erase(job); }

  void run(const contracts::incoming_call_ptr& job) {
    job->ticket = state.pool.add(job, job->request.depth, job->request.payload.message.node);
    start_calls();
    if (job->has_started) return;
    state.waiting.add(job);
    limit(job);
  }

  std::chrono::nanoseconds time_left(const contracts::incoming_call& job) const {
    return std::chrono::nanoseconds(
      std::max<std::int64_t>(1, job.request.deadline_ns - (support::steady_ns() - job.arrived_ns)));
  }

  /// The deadline of a question on behalf of a call: the reason of its failure comes before the call ends.
  std::chrono::milliseconds patience_for_part(const contracts::incoming_call& job) const {
    const auto deadline = here.options().deadline;
    if (job.request.deadline_ns <= 0) return deadline;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(time_left(job));
    return std::min(deadline, support::time_of_part(left, job.request.depth));
  }

  /// Sets an alarm that refuses the call at its deadline if the call has not started by then.
  void limit(const contracts::incoming_call_ptr& job) {
    const bool is_limited = job->expiry != support::deadline_clock::alarm{};
    if (is_limited || !here.networked() || job->request.deadline_ns <= 0) return;
    base::set_deadline(job, time_left(*job));
  }

  void start_calls() {
    while (auto next = state.pool.next([this](node_id caller) { return state.answers.has_room(caller); })) {
      next->call->has_started = true;
      state.waiting.erase(next->call);
      next->call->queued = nullptr;
      here.deadlines().call_off(next->call->expiry);
      const auto worker = worker_for(*next);
      if (!worker) continue;
      const auto& request = next->call->request;
      auto run = [around = parts.workers.surroundings(), call = next->call, worker] {
        calls::serve_call(call, around, worker);
      };
      auto send = [call = next->call, worker] { caf::anon_send(worker, call); };
      if (!here.run_soon(calls::label_of(request.function, request.values), std::move(run), send)) send();
    }
  }

  /// The worker for the call. Null if the system gives no thread: the call has then failed.
  contracts::call_worker_actor worker_for(
    calls::call_pool<contracts::call_worker_actor, contracts::incoming_call_ptr>::start& next) {
    if (next.worker) return std::move(*next.worker);
    try {
      return parts.workers.spawn();
    } catch (const error& none) {
      state.pool.not_started(next.call->request.depth);
      calls::refuse_call(*next.call, none, here);
      return {};
    }
  }
};

template <class Self>
serving_shell(Self) -> serving_shell<Self>;

}  // namespace troupe::nodes
