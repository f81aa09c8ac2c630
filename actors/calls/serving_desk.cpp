// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/serving_desk.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include <caf/duration.hpp>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/calls/call_worker.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/services/meeting.hpp>
#include <troupe/actors/services/message_clock.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/node_network.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/actors/support/inner_time.hpp>
#include <troupe/actors/support/refused_request.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::calls {

namespace {

// A call that waits for another call keeps a thread. A call of this depth is refused: it is probably part of an endless
// recursion, or a false claim of a program that is no node.
constexpr std::uint32_t most_depth = 4096;

}  // namespace

caf::typed_response_promise<call_result> serving_desk::serve(call_request& request) {
  here_.directory.traffic.received(request.payload.message.node, request.payload.tensors, request.payload.packings);
  auto job = std::make_shared<contracts::incoming_call>();
  job->request = std::move(request);
  job->answer = support::answer_way(self_);
  job->arrived_ns = support::steady_ns();
  job->number = ++last_;
  job->use = here_.directory.traffic.hold(job->request.payload.message.node);
  if (const auto why = why_not_taken(job); !why.empty())
    refuse(job, support::refused_request(why));
  else
    find_context(job);
  return self_->response_promise<call_result>();
}

void serving_desk::went_down(node_id who) { asked_.fail(self_->ctrl(), who, make_error(errc::peer_down, "it went down")); }

/// Why the node refuses the call; empty if the node accepts it.
std::string serving_desk::why_not_taken(const call& job) {
  const auto& request = job->request;
  if (auto why = rights_.why_not(request); !why.empty()) return why;
  if (request.depth >= most_depth)
    return "the call is " + std::to_string(request.depth) + " calls deep, and fewer than " + std::to_string(most_depth) +
           " are taken";
  return workers_.take(job);
}

passes::open_context serving_desk::context_of(const contracts::incoming_call& job) {
  const auto& payload = job.request.payload;
  return payload.context ? contexts_.find_or_open(payload.context, payload.message.node) : passes::open_context{};
}

/// Finds or opens the context of the call. The context is opened only while the caller and the opener of the context are up
/// here (GW-1, GW-5). If the context is not open and one of these two nodes is not up, the call waits until that node is up
/// (GW-19).
void serving_desk::find_context(const call& job) {
  const auto& payload = job->request.payload;
  const auto context = context_of(*job);
  if (payload.context && !context.actor && membership_)
    for (const auto who : {payload.message.node, payload.context.node})
      if (who != node_id{} && who != here_.self.id() && !here_.directory.gateway(who)) return find_context_when_met(who, job);
  find_gradients(job, context);
}

void serving_desk::find_context_when_met(node_id who, const call& job) {
  workers_.hold(job);
  const auto met = [this, job, was_down = here_.directory.is_down(who)] {
    if (!workers_.end_hold(job)) return;
    find_context(job);
    // The call may have left before the two nodes lost each other, and its context may have been released since. The opener
    // releases an announced context that it does not know.
    if (was_down) contexts_.announce(job->request.payload.context);
  };
  const auto not_met = [this, job](const caf::error&) {
    if (workers_.end_hold(job)) find_gradients(job, context_of(*job));
  };
  services::meet(self_, here_, membership_, who, services::meeting_patience, met, not_met);
}

void serving_desk::find_gradients(const call& job, const passes::open_context& context) {
  const auto& request = job->request;
  if (!request.payload.context) return workers_.run(job);
  if (!context.actor) return refuse(job, contexts_.unknown(request.payload.context));
  job->record = context.record;
  const bool is_believed = believes(request, *context.record);  // before the call gives its caller a part
  try {
    if (is_believed) learn(context, {request.completed, request.failed});
  } catch (const error& too_much) {
    return refuse(job, support::refused_request(too_much.what()));
  }
  context.record->members.called_by(request.payload.message.node);
  if (request.span != 0) context.record->is_profiled = true;
  if (!is_believed && context.record->lacks(request.completed, request.failed)) return ask_opener(job, context);
  gather(job, context);
}

/// Whether this node believes what the call says about the passes of its context (GW-18).
bool serving_desk::believes(const call_request& request, const passes::context_record& record) const {
  const auto caller = request.payload.message.node;
  if (here_.network.peers.policy == nullptr || caller == record.id().node) return true;
  const auto is_possible = [known = record.passes()](pass_number number) { return known.is_possible(number); };
  return rights_.takes_part(caller, record.id()) && is_possible(request.completed) &&
         std::all_of(request.failed.begin(), request.failed.end(), is_possible);
}

void serving_desk::learn(const passes::open_context& context, const contracts::pass_history& known) {
  for (const auto& task : context.record->learn(known.completed, known.failed)) self_->send(task, support::close_atom::value);
}

/// Asks the node that opened the context which of its passes have ended. Then the call goes on.
void serving_desk::ask_opener(const call& job, const passes::open_context& context) {
  const auto context_id = context.record->id();
  const auto opener = context_id.node;
  const auto gateway = here_.directory.gateway(opener);
  if (opener == here_.self.id()) return gather(job, context);
  workers_.hold(job);
  if (!gateway) return hear_nothing_of_passes(job, context, make_error(errc::peer_down, "the opener of its context is down"));
  call_request question;
  question.what = requests::passes{context_id.number};
  question.payload.message = {here_.clock.next_number(), here_.self.id()};
  question.depth = job->request.depth + 1;
  here_.directory.traffic.sent(opener);
  auto asked = self_->request(gateway, patience_for_question(*job), std::move(question));
  asked_.add(opener, asked.id());
  const auto unheard = [this, job, context, opener, number = asked.id()](const caf::error& why) {
    asked_.answered(opener, number);
    hear_nothing_of_passes(job, context, why);
  };
  const auto heard = [this, job, context, opener, number = asked.id(), unheard](const call_result& told) {
    try {
      learn(context, history_from(told.values));
    } catch (const error& unreadable) {
      return unheard(make_error(unreadable.code(), unreadable.what()));
    }
    asked_.answered(opener, number);
    if (workers_.end_hold(job)) gather(job, context);
  };
  asked.then(heard, unheard);
}

/// For a call whose opener has not said which passes have ended, perhaps because the opener does not know yet that this node
/// takes part in the context. The call goes on if no gradients wait to be gathered here; otherwise the call is refused.
void serving_desk::hear_nothing_of_passes(const call& job, const passes::open_context& context, const caf::error& why) {
  if (!workers_.end_hold(job)) return;
  context.record->tasks().empty() ? gather(job, context) : refuse(job, to_exception(why));
}

void serving_desk::gather(const call& job, const passes::open_context& context) {
  if (!context.record->passes().has_gradients) return workers_.run(job);
  workers_.hold(job);
  // No deadline: the context actor always answers (CO-7).
  self_->request(context.actor, caf::infinite, support::gradients_atom::value)
    .then(
      [this, job](contracts::gradients_ptr& gathered) {
        if (!workers_.end_hold(job)) return;
        job->gradients = std::move(gathered);
        workers_.run(job);
      },
      [this, job](const caf::error& why) {
        if (workers_.end_hold(job)) refuse(job, to_exception(why));
      });
}

template <class Reason>
void serving_desk::refuse(const call& job, const Reason& why) {
  workers_.drop(job);
  here_.deadlines.call_off(job->expiry);
  refuse_call(*job, why, here_);
}

/// The deadline of a question on behalf of a call. The question ends before the deadline of the call, so that the call can fail
/// with the reason of the question.
std::chrono::milliseconds serving_desk::patience_for_question(const contracts::incoming_call& job) const {
  const auto deadline = here_.options.deadline;
  if (job.request.deadline_ns <= 0) return deadline;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time_left(job));
  return std::min(deadline, support::inner_time(left, job.request.depth));
}

}  // namespace troupe::calls
