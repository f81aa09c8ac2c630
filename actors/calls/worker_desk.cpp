// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/worker_desk.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

#include <caf/send.hpp>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/calls/call_worker.hpp>
#include <troupe/actors/services/node_services.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::calls {

namespace {

// Deeply nested calls make many workers. When the calls are over, at most this many idle workers stay.
constexpr std::size_t most_idle_workers = 16;
// A call that waits for another call keeps its thread. Beyond this number of threads for a depth, further calls of the depth wait.
constexpr std::size_t most_calls_of_depth = 256;

// A caller holds calls back beyond its send limit, for each depth of nested calls. So many times that limit may wait here: a caller that
// is no node of troupe's might hold nothing back.
constexpr std::uint64_t calls_in_queue = 4;
constexpr std::uint64_t least_send_limit = std::uint64_t{256} << 20;

}  // namespace

std::chrono::nanoseconds time_left(const contracts::incoming_call& job) {
  return std::chrono::nanoseconds(std::max<std::int64_t>(1, job.request.deadline_ns - (support::steady_ns() - job.arrived_ns)));
}

worker_desk::worker_desk(support::desk_actor self, services::node_services& here, call_workers& workers,
                         transfers::transfer_desk& transfers)
    : self_(self),
      here_(here),
      workers_(workers),
      transfers_(transfers),
      pool_(here.options().workers, most_idle_workers, most_calls_of_depth),
      waiting_(calls_in_queue * std::max(here.options().send_limit, least_send_limit)),
      answers_(here.options().send_limit) {}

std::string worker_desk::why_no_room(contracts::incoming_call& job) const {
  const auto caller = job.request.payload.message.node;
  if (caller == here_.id()) return {};
  job.bytes = bytes_of(job.request);
  if (waiting_.has_room(caller, job.bytes)) return {};
  return "calls of " + std::to_string(waiting_.bytes_of(caller)) + " bytes of the caller wait here, and no more than " +
         std::to_string(waiting_.limit()) + " may";
}

void worker_desk::hold(const contracts::incoming_call_ptr& job) {
  waiting_.add(job);
  limit(job);
}

void worker_desk::run(const contracts::incoming_call_ptr& job) {
  job->ticket = pool_.add(job, job->request.depth, job->request.payload.message.node);
  start_calls();
  if (!job->has_started) hold(job);
}

void worker_desk::done(const contracts::incoming_call_ptr& job) {
  const auto worker = caf::actor_cast<contracts::call_worker_actor>(std::exchange(job->worker, nullptr));
  answer(job);
  if (worker) is_free(worker, job->request.depth);
}

void worker_desk::answer(const contracts::incoming_call_ptr& job) {
  if (job->failure) {
    job->promise.deliver(make_error(job->failure->code(), job->failure->what()));
    return;
  }
  auto& payload = job->result.payload;
  const auto caller = job->request.payload.message.node;
  const auto bytes = bytes_of(payload.tensors, job->result.values);
  const bool is_counted = caller != here_.id() && here_.directory().gateway(caller);
  if (is_counted) answers_.add(caller, bytes);
  auto deliver = [this, job, caller, counted = is_counted ? bytes : 0] {
    job->promise.deliver(std::move(job->result));
    if (counted > 0) answer_left(caller, counted);
  };
  transfers_.goes_ahead(caller, payload.tensors) ? transfers_.ship(caller, payload.tensors, payload.ahead, deliver) : deliver();
}

void worker_desk::deadline_passed(const contracts::incoming_call_ptr& job) {
  if (waiting_.contains(job)) refuse(job, no_worker_in_time(*job));
}

void worker_desk::is_free(const contracts::call_worker_actor& worker, std::size_t depth) {
  pool_.idle(worker, depth);
  start_calls();
  while (const auto surplus = pool_.surplus()) workers_.let_go(*surplus);
  if (pool_.has_idle() && !std::exchange(will_tick_, true)) tick_later();
}

void worker_desk::is_blocked() {
  pool_.blocked();
  start_calls();
}

void worker_desk::end_idle() {
  for (const auto& each : pool_.unneeded()) workers_.let_go(each);
  will_tick_ = pool_.has_idle();
  if (will_tick_) tick_later();
}

void worker_desk::tick_later() const { self_->send_later(here_.deadlines(), workers_.idle_time(), support::tick_atom::value); }

void worker_desk::context_closed(const context_id& id) {
  for (const auto& job : waiting_.of(id)) refuse(job, error(errc::unknown_context, "its context was released"));
}

void worker_desk::went_down(const contracts::peer_down& news) {
  answers_.forget(news.who.id);
  for (const auto& job : waiting_.from(news.who.id))
    refuse(job, error(errc::peer_down, "its caller went down (" + news.reason + ")"));
}

/// Refuses a call that has not started (GW-13).
void worker_desk::refuse(const contracts::incoming_call_ptr& job, const error& why) {
  waiting_.erase(job);
  pool_.take(job->ticket, job->request.depth, job->request.payload.message.node);
  here_.deadlines().call_off(job->expiry);
  refuse_call(*job, why, here_);
  // A question on behalf of the call may still hold it, and its bytes are counted no more (QL-1).
  job->request.values = {};
  job->request.payload.tensors.clear();
}

/// If a question is due (AU-2), asks whether the caller has taken its answers.
void worker_desk::answer_left(node_id caller, std::uint64_t bytes) {
  if (const auto left = answers_.left(caller, bytes))
    transfers_.when_taken(caller, [this, caller, left = *left] {
      answers_.taken(caller, left);
      start_calls();
    });
}

/// Sets an alarm that refuses the call at its deadline if the call has not started by then.
void worker_desk::limit(const contracts::incoming_call_ptr& job) const {
  const bool is_limited = job->expiry != support::deadline_clock::alarm{};
  if (is_limited || job->request.deadline_ns <= 0) return;
  job->expiry = self_->send_later(here_.deadlines(), time_left(*job), support::deadline_atom::value, job);
}

void worker_desk::start_calls() {
  while (auto next = pool_.next([this](node_id caller) { return answers_.has_room(caller); })) {
    next->call->has_started = true;
    waiting_.erase(next->call);
    here_.deadlines().call_off(next->call->expiry);
    const auto worker = worker_for(*next);
    if (!worker) continue;
    const auto& request = next->call->request;
    auto run = [around = workers_.surroundings(), call = next->call, worker] { serve_call(call, around, worker); };
    auto send = [call = next->call, worker] { caf::anon_send(worker, call); };
    if (!here_.run_soon(label_of(request.function, request.values), std::move(run), send)) send();
  }
}

/// The worker for the call. Null if the system gives no thread: the call has then failed.
contracts::call_worker_actor worker_desk::worker_for(pool::start& next) {
  if (next.worker) return std::move(*next.worker);
  try {
    return workers_.spawn();
  } catch (const error& none) {
    pool_.not_started(next.call->request.depth);
    refuse_call(*next.call, none, here_);
    return {};
  }
}

}  // namespace troupe::calls
