// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/calling_desk.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <caf/sec.hpp>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/services/meeting.hpp>
#include <troupe/actors/services/timed_request.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/actors/support/inner_time.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::calls {

namespace {

constexpr std::chrono::milliseconds shortest_limit{1};

std::chrono::milliseconds time_left(const contracts::outgoing_call& job) {
  const std::chrono::nanoseconds waited(support::steady_ns() - job.begin_ns);
  return std::max(job.deadline - std::chrono::duration_cast<std::chrono::milliseconds>(waited), shortest_limit);
}

error no_answer(const contracts::outgoing_call& job) {
  return error(errc::deadline_passed, "no answer within " + support::seconds_text(job.deadline));
}

}  // namespace

calling_desk::~calling_desk() {
  for (const auto& [number, job] : jobs_) calls_.fail(*job, error(errc::stopping, "this node stopped before it was answered"));
}

void calling_desk::call(const job_ptr& job) {
  const auto& request = job->request;
  const auto& context = request.payload.context;
  if (context && !contexts_.find(context).actor) return calls_.fail(*job, contexts_.unknown(context));
  const bool is_up = here_.directory.gateway(job->to) != nullptr;
  if (!is_up && !here_.directory.is_member(job->to)) return calls_.fail(*job, error(errc::peer_down, "it is down"));
  job->use = here_.directory.traffic.hold(job->to);
  job->number = ++last_;
  jobs_.emplace(job->number, job);
  on(calls_made::made{job->number, job->to, context, request.target, request.depth, job->late, is_up});
}

void calling_desk::deadline_passed(const job_ptr& job) { on(calls_made::failed{job->number, no_answer(*job)}); }

void calling_desk::arrived(const job_ptr& job) {
  if (job->not_copied) return on(calls_made::failed{job->number, *job->not_copied});
  on(calls_made::tensors_came{job->number});
}

void calling_desk::context_closed(const context_id& id) {
  on(calls_made::context_closed{id, error(errc::unknown_context, "its context was released before it was answered")});
}

void calling_desk::went_down(const contracts::peer_down& news) {
  on(calls_made::node_down{news.who.id, error(errc::peer_down, "it went down (" + news.reason + ")")});
}

/// `answer`: the answer, if `what` is calls_made::answered.
void calling_desk::on(const calls_made::event& what, call_result* answer) {
  for (const auto& effect : core_.on(what))
    std::visit(
      [&](const auto& each) {
        const auto job = jobs_.at(each.call);
        if constexpr (std::is_same_v<decltype(each), const calls_made::finish&>)
          finish(*job, *answer);
        else
          carry_out(job, each);
      },
      effect);
}

void calling_desk::carry_out(const job_ptr& job, const calls_made::meet&) {
  const auto met = [this, job] { on(calls_made::met{job->number}); };
  const auto not_met = [this, job](const caf::error& why) {
    on(
      calls_made::failed{job->number, error(errc::peer_down, std::string("no connection to it: ") + to_exception(why).what())});
  };
  const auto left = support::inner_time(time_left(*job), job->request.depth);
  services::meet(self_, here_, membership_, job->to, left, met, not_met);
}

void calling_desk::carry_out(const job_ptr& job, const calls_made::limit&) {
  if (!job->is_limited()) job->expiry = self_->send_later(here_.deadlines, time_left(*job), support::deadline_atom::value, job);
}

void calling_desk::carry_out(const job_ptr& job, const calls_made::ship& what) {
  const auto shipped = [this, job] { on(calls_made::shipped{job->number, leaves_in_fragments(job->request)}); };
  auto& payload = job->request.payload;
  const auto fail = [this, job, shipped](const error& why) {
    on(calls_made::failed{job->number, why});
    shipped();  // the call has ended: its transfers are called off
  };
  if (!transfers_.goes_ahead(job->to, payload.tensors))
    return !payload.ahead.unfinished ? shipped() : fail(error(errc::peer_down, "it went down"));
  carry_out(job, calls_made::limit{what.call});
  transfers_.ship(job->to, payload.tensors, payload.devices, payload.ahead, shipped, fail);
}

void calling_desk::carry_out(const job_ptr& job, const calls_made::ask&) {
  const auto gateway = here_.directory.gateway(job->to);
  if (!gateway) return;  // the message peer_down is on its way and will fail the call
  here_.deadlines.call_off(job->expiry);
  const auto left = time_left(*job);
  job->request.deadline_ns = std::chrono::nanoseconds(left).count();
  const auto question = services::timed_request(self_, here_, gateway, left, job->expiry, job->request);
  job->asked = question.id();
  question.then(
    [this, job](call_result& result) {
      job->asked = std::nullopt;
      on(calls_made::answered{job->number}, &result);
    },
    [this, job](const caf::error& why) {
      job->asked = std::nullopt;
      // A request_timeout comes only from the alarm of this node. If the deadline passes on the called node, that node answers
      // with an error of troupe.
      on(calls_made::failed{job->number, why == caf::sec::request_timeout ? no_answer(*job) : to_exception(why)});
    });
  job->request.payload.tensors.clear();
}

void calling_desk::finish(contracts::outgoing_call& job, call_result& answer) {
  here_.deadlines.call_off(job.expiry);
  if (job.record) job.record->members.joined(answer.participants);
  if (job.record && answer.is_child) job.record->members.adopt(job.to);
  calls_.finish(job, answer);
}

void calling_desk::carry_out(const job_ptr& job, const calls_made::fail& what) {
  here_.deadlines.call_off(job->expiry);
  calls_.fail(*job, what.why);
  if (const auto question = std::exchange(job->asked, std::nullopt))
    support::end_request(self_->ctrl(), *question, make_error(what.why.code(), what.why.what()));
}

void calling_desk::carry_out(const job_ptr& job, const calls_made::call_off&) {
  transfers_.call_off(job->to, job->request.payload.ahead);
}

}  // namespace troupe::calls
