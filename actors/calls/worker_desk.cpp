// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/worker_desk.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include <caf/send.hpp>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/calls/call_worker.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/node_network.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/support/work_times.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::calls {

namespace {

// Deeply nested calls make many workers. When the calls are over, at most this many idle workers stay.
constexpr std::size_t most_idle_workers = 16;
// A call that waits for another call keeps its thread. Beyond this number of threads for a depth, further calls of the depth
// wait.
constexpr std::size_t most_calls_of_depth = 256;

// A node of troupe holds its own calls back beyond its send limit, separately for each depth. Another program may not do so. So
// the calls of one caller that wait here may have at most this many times the send limit in bytes.
constexpr std::uint64_t calls_in_queue = 4;
constexpr std::uint64_t least_send_limit = std::uint64_t{256} << 20;

error context_released() { return {errc::unknown_context, "its context was released"}; }

}  // namespace

std::chrono::nanoseconds time_left(const contracts::incoming_call& job) {
  return std::chrono::nanoseconds(std::max<std::int64_t>(1, job.request.deadline_ns - (support::steady_ns() - job.arrived_ns)));
}

worker_desk::worker_desk(support::desk_actor self, const used_services& here, call_workers& workers,
                         transfers::transfer_desk& transfers)
    : self_(self),
      here_(here),
      workers_(workers),
      transfers_(transfers),
      core_({.workers = here.options.workers,
             .most_idle = most_idle_workers,
             .most_begun = most_calls_of_depth,
             .waiting_bytes = calls_in_queue * std::max(here.options.send_limit, least_send_limit),
             .answer_bytes = here.options.send_limit}) {}

std::string worker_desk::take(const job_ptr& job) {
  const auto& request = job->request;
  const auto caller = request.payload.message.node;
  const auto counted = caller != here_.self.id() ? bytes_of(request) : 0;
  if (!core_.on(calls_taken::came{job->number, caller, request.payload.context, request.depth, counted}).empty())
    return "calls of " + std::to_string(core_.bytes_of(caller)) + " bytes of the caller wait here, and no more than " +
           std::to_string(core_.most_bytes()) + " may";
  jobs_.emplace(job->number, job);
  return {};
}

void worker_desk::drop(const job_ptr& job) {
  core_.on(calls_taken::dropped{job->number});
  jobs_.erase(job->number);
}

void worker_desk::done(const job_ptr& job) {
  const auto worker = caf::actor_cast<contracts::call_worker_actor>(std::exchange(job->worker, nullptr));
  answer(job);
  if (worker) is_free(worker, job->request.depth);
}

void worker_desk::answer(const job_ptr& job) {
  const auto caller = job->request.payload.message.node;
  if (!job->failure && caller != here_.self.id() && here_.directory.gateway(caller))
    on(calls_taken::answered{job->number, job->answer_bytes});
  auto leave = [this, job] {
    if (job->answer) job->answer.deliver(std::move(job->result));
    on(calls_taken::answer_left{job->number});
  };
  auto& payload = job->result.payload;
  const auto fail = [this, job](const error& why) {
    if (job->answer) job->answer.deliver(make_error(why.code(), why.what()));
    on(calls_taken::answer_left{job->number});
  };
  const bool is_ahead = job->answer && transfers_.goes_ahead(caller, payload.tensors);
  if (is_ahead) return transfers_.ship(caller, payload.tensors, payload.devices, payload.ahead, leave, fail);
  !payload.ahead.unfinished ? leave() : fail(error(errc::peer_down, "it went down"));
}

void worker_desk::deadline_passed(const job_ptr& job) { on(calls_taken::refused{job->number, no_worker_in_time(*job)}); }

void worker_desk::context_closed(const context_id& id) { on(calls_taken::context_closed{id, context_released()}); }

void worker_desk::went_down(const contracts::peer_down& news) {
  on(calls_taken::node_down{news.who.id, error(errc::peer_down, "its caller went down (" + news.reason + ")")});
}

void worker_desk::on(const calls_taken::event& what) {
  tell(what);
  for (std::size_t i = 0; i < effects_.size(); ++i)
    std::visit([this](const auto& each) { carry_out(each); }, calls_taken::effect(std::move(effects_[i])));
  effects_.clear();
}

/// Tells the core of an event while on() runs, which carries out the effects.
void worker_desk::tell(const calls_taken::event& what) {
  for (auto& each : core_.on(what)) effects_.push_back(std::move(each));
}

void worker_desk::run(const job_ptr& job) {
  on(calls_taken::ready{{job->number}, here_.times.is_short(label_of(job->request.what))});
}

void worker_desk::left_series(const job_ptr& job) {
  jobs_.emplace(job->number, job);
  on(calls_taken::leaves_series{{job->number}});
  // The call did not wait when its context was released or its caller went down.
  if (job->record && job->record->is_released())
    on(calls_taken::refused{job->number, context_released()});
  else if (here_.directory.is_down(job->request.payload.message.node))
    on(calls_taken::refused{job->number, error(errc::peer_down, "its caller went down")});
}

void worker_desk::carry_out(const calls_taken::start& what) {
  const auto job = jobs_.at(what.call);
  here_.deadlines.call_off(std::exchange(job->expiry, {}));  // a call that leaves the series gets another alarm
  contracts::call_worker_actor worker;
  try {
    worker = what.on ? workers_.find(*what.on) : workers_.spawn();
  } catch (const error& none) {
    return tell(calls_taken::no_worker{{what.call, none}});
  }
  jobs_.erase(what.call);
  auto run = [&around = workers_.surroundings(), job, worker] { serve_call(job, around, worker); };
  const auto send = [job, worker] { caf::anon_send(worker, job); };
  const auto leave = [job, desk = here_.actors.gateway] { caf::anon_send(desk, support::leave_atom::value, job); };
  const bool begins_series = !core_.has_series();
  auto elsewhere = what.joins_series || begins_series ? std::function<void()>(leave) : std::function<void()>(send);
  const bool runs_here =
    here_.network.run_soon(here_.times, label_of(job->request.what), std::move(run), std::move(elsewhere), what.joins_series);
  if (runs_here && begins_series) tell(calls_taken::begins_series{what.call, worker.id()});
  if (runs_here) return;
  if (!what.joins_series) return send();
  jobs_.emplace(what.call, job);
  tell(calls_taken::leaves_series{{what.call}});
}

/// Refuses a call that has not started (GW-13).
void worker_desk::carry_out(const calls_taken::refuse& what) {
  const auto job = jobs_.extract(what.call).mapped();
  here_.deadlines.call_off(job->expiry);
  refuse_call(*job, what.why, here_);
  // The data of the call is freed now, because its bytes do not count from now on (QL-1). A question on behalf of the call may
  // still hold `job`.
  job->request.what = {};
  job->request.values = {};
  job->request.payload.tensors.clear();
}

/// Sets an alarm that refuses the call at its deadline if the call has not started by then.
void worker_desk::carry_out(const calls_taken::limit& what) {
  const auto& job = jobs_.at(what.call);
  const bool is_limited = job->expiry != support::deadline_clock::alarm{};
  if (!is_limited && job->request.deadline_ns > 0)
    job->expiry = self_->send_later(here_.deadlines, time_left(*job), support::deadline_atom::value, job);
}

void worker_desk::carry_out(const calls_taken::tick_later&) {
  self_->send_later(here_.deadlines, workers_.idle_time(), support::tick_atom::value);
}

void worker_desk::carry_out(const calls_taken::ask_taken& what) {
  transfers_.when_taken(what.caller, [this, what] { on(calls_taken::answers_taken{what.caller, what.bytes}); });
}

}  // namespace troupe::calls
