// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/calling_desk.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <caf/sec.hpp>

#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/services/meeting.hpp>
#include <troupe/actors/services/node_services.hpp>
#include <troupe/actors/services/timed_request.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/actors/support/time_of_part.hpp>
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
  for (const auto& [context, open] : std::exchange(open_, {}))
    for (const auto& job : open) calls_.fail(*job, error(errc::stopping, "this node stopped before it was answered"));
}

void calling_desk::call(const contracts::outgoing_call_ptr& job) {
  const auto& context = job->request.payload.context;
  if (context && !contexts_.find(context).actor) return calls_.fail(*job, contexts_.unknown(context));
  const bool is_up = here_.directory().gateway(job->to) != nullptr;
  if (!is_up && !here_.directory().is_member(job->to)) return calls_.fail(*job, error(errc::peer_down, "it is down"));
  open_[context].insert(job);
  job->use = here_.directory().hold(job->to);
  is_up && !meeting_.contains(job->to) ? begin(job) : meet_first(job);
}

void calling_desk::deadline_passed(const contracts::outgoing_call_ptr& job) {
  if (ended(job)) fail(job, no_answer(*job));
}

void calling_desk::arrived(const contracts::outgoing_call_ptr& job) {
  const auto ready = late_.arrived(job);
  if (job->not_copied && ended(job)) fail(job, *job->not_copied);
  leave(ready);
}

void calling_desk::context_closed(const context_id& id) {
  if (auto lost = open_.extract(id))
    for (const auto& job : lost.mapped())
      fail(job, error(errc::unknown_context, "its context was released before it was answered"));
}

void calling_desk::went_down(const contracts::peer_down& news) {
  set lost;
  for (const auto& [context, all] : open_)
    for (const auto& job : all)
      if (job->to == news.who.id) lost.insert(job);
  for (const auto& job : lost) ended(job);
  std::erase_if(shipping_, [&](const auto& each) { return each.first.node == news.who.id; });
  for (const auto& job : lost) fail(job, error(errc::peer_down, "it went down (" + news.reason + ")"));
}

void calling_desk::begin(const contracts::outgoing_call_ptr& job) { late_.hold(job) ? limit(job) : leave(job); }

/// Connects to the member first. Calls to one member leave in the order in which they came.
void calling_desk::meet_first(const contracts::outgoing_call_ptr& job) {
  ++meeting_[job->to];
  limit(job);
  const auto over = [this, job] {
    if (--meeting_[job->to] == 0) meeting_.erase(job->to);
  };
  const auto met = [this, job, over] {
    over();
    if (is_open(job)) begin(job);
  };
  const auto not_met = [this, job, over](const caf::error& why) {
    over();
    if (ended(job)) fail(job, error(errc::peer_down, std::string("no connection to it: ") + to_exception(why).what()));
  };
  const auto left = support::time_of_part(time_left(*job), job->request.depth);
  services::meet(self_, here_, membership_, job->to, left, met, not_met);
}

/// Sets an alarm that fails the call at its deadline if the call has not left by then.
void calling_desk::limit(const contracts::outgoing_call_ptr& job) const {
  job->expiry = self_->send_later(here_.deadlines(), time_left(*job), support::deadline_atom::value, job);
}

void calling_desk::leave(const std::vector<contracts::outgoing_call_ptr>& ready) {
  for (const auto& job : ready)
    if (is_open(job)) leave(job);
}

void calling_desk::leave(const contracts::outgoing_call_ptr& job) {
  auto& payload = job->request.payload;
  const auto object = job->request.target;
  const bool waits = object && shipping_.contains(object);  // behind an earlier call on the object
  if (!waits && !transfers_.goes_ahead(job->to, payload.tensors)) return request(job);
  if (!job->is_limited()) limit(job);
  if (object) ++shipping_[object];
  transfers_.ship(job->to, payload.tensors, payload.ahead, [this, job, object] {
    if (object && --shipping_[object] == 0) shipping_.erase(object);
    job->ended ? transfers_.call_off(job->to, job->request.payload.ahead) : request(job);
  });
}

void calling_desk::request(const contracts::outgoing_call_ptr& job) {
  auto gateway = here_.directory().gateway(job->to);
  if (!gateway) return;  // the message peer_down is on its way and will fail the call
  if (bulky_.holds(job)) {
    if (!job->is_limited()) limit(job);
    return;
  }
  here_.deadlines().call_off(job->expiry);
  const auto left = time_left(*job);
  job->request.deadline_ns = std::chrono::nanoseconds(left).count();
  bulky_.leaves(job);
  const auto question = services::timed_request(self_, here_, gateway, left, job->expiry, job->request);
  job->asked = question.id();
  question.then([this, job](call_result& result) { answered(job, result); },
                [this, job](const caf::error& reason) {
                  job->asked = std::nullopt;
                  // Only the own alarm is a timeout of CAF: a deadline that passed for the other node is an error of troupe's.
                  if (ended(job)) fail(job, reason == caf::sec::request_timeout ? no_answer(*job) : to_exception(reason));
                });
  job->request.payload.tensors.clear();
}

void calling_desk::answered(const contracts::outgoing_call_ptr& job, call_result& result) {
  job->asked = std::nullopt;
  if (!ended(job)) return;
  if (job->record) job->record->joined(result.participants);
  if (job->record && result.is_child) job->record->adopt(job->to);
  calls_.finish(*job, result);
  request_all(bulky_.ended(*job));
}

bool calling_desk::is_open(const contracts::outgoing_call_ptr& job) const {
  const auto found = open_.find(job->request.payload.context);
  return found != open_.end() && found->second.contains(job);
}

/// Removes the call from the open calls. False if the call has ended already.
bool calling_desk::ended(const contracts::outgoing_call_ptr& job) {
  here_.deadlines().call_off(job->expiry);
  auto found = open_.find(job->request.payload.context);
  if (found == open_.end() || found->second.erase(job) == 0) return false;
  if (found->second.empty()) open_.erase(found);
  return true;
}

/// Pre: the call is no longer among the open calls.
void calling_desk::fail(const contracts::outgoing_call_ptr& job, const error& reason) {
  here_.deadlines().call_off(job->expiry);
  calls_.fail(*job, reason);
  if (const auto question = std::exchange(job->asked, std::nullopt))
    support::end_request(self_->ctrl(), *question, make_error(reason.code(), reason.what()));
  leave(late_.ended(*job));
  request_all(bulky_.ended(*job));
}

void calling_desk::request_all(const std::vector<contracts::outgoing_call_ptr>& those) {
  for (const auto& job : those) is_open(job) ? request(job) : transfers_.call_off(job->to, job->request.payload.ahead);
}

}  // namespace troupe::calls
