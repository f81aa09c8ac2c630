// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <unordered_set>
#include <utility>
#include <vector>

#include <caf/sec.hpp>
#include <caf/send.hpp>

#include <troupe/actors/nodes/gateway_shell.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/services/timed_request.hpp>
#include <troupe/actors/support/exception_text.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/support/time_of_part.hpp>
#include <troupe/actors/transfers/ship.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::nodes {

inline constexpr std::chrono::milliseconds shortest_limit{1};

/// The handlers of the `gateway` actor for calls and gradients that leave this node, and for the answers of calls.
template <class Self>
struct calling_shell : gateway_shell<Self> {
  using base = gateway_shell<Self>;
  using base::base, base::here, base::parts, base::self, base::state;

  void call(const contracts::outgoing_call_ptr& job) {
    const auto& context = job->request.payload.context;
    if (context && !parts.contexts.find(context).actor) return parts.calls.fail(*job, parts.contexts.unknown(context));
    const bool is_up = here.directory().gateway(job->to) != nullptr;
    if (!is_up && !here.directory().is_member(job->to)) return parts.calls.fail(*job, error(errc::peer_down, "it is down"));
    state.calls[context].insert(job);
    job->use = here.directory().hold(job->to);
    is_up && !state.meeting.contains(job->to) ? begin(job) : meet_first(job);
  }

  void deadline_passed(const contracts::outgoing_call_ptr& job) {
    if (ended(job)) fail(job, no_answer(*job));
  }

  /// To be called when the elements of the call's tensors have been copied from their devices, or could not be copied.
  void arrived(const contracts::outgoing_call_ptr& job) {
    const auto ready = state.late.arrived(job);
    if (job->not_copied && ended(job)) fail(job, *job->not_copied);
    leave(ready);
  }

  void gradients_leave(const contracts::outgoing_gradients_ptr& what) {
    auto send = [s = self, what] { calling_shell(s).send_gradients(what); };
    auto& message = what->message;
    transfers::goes_ahead(here, what->to, message.gradients)
      ? transfers::ship(self, what->to, message.gradients, message.ahead, send)
      : send();
  }

  void context_closed(const context_id& id) {
    if (auto lost = state.calls.extract(id))
      fail_all(lost.mapped(), error(errc::unknown_context, "its context was released before it was answered"));
  }

  void went_down(const contracts::peer_down& news) {
    std::unordered_set<contracts::outgoing_call_ptr> lost;
    for (const auto& [context, calls] : state.calls)
      for (const auto& job : calls)
        if (job->to == news.who.id) lost.insert(job);
    for (const auto& job : lost) ended(job);
    std::erase_if(state.shipping, [&](const auto& each) { return each.first.node == news.who.id; });
    fail_all(lost, error(errc::peer_down, "it went down (" + news.reason + ")"));
  }

 private:
  void begin(const contracts::outgoing_call_ptr& job) { state.late.hold(job) ? limit(job) : leave(job); }

  /// Connects to the member first. Calls to one member leave in the order in which they came.
  void meet_first(const contracts::outgoing_call_ptr& job) {
    ++state.meeting[job->to];
    limit(job);
    const auto left = support::time_of_part(time_left(*job), job->request.depth);
    const auto over = [s = self, job] {
      auto& meeting = s->state.meeting;
      if (--meeting[job->to] == 0) meeting.erase(job->to);
    };
    const auto met = [s = self, job, over] {
      over();
      calling_shell sh(s);
      if (sh.is_open(job)) sh.begin(job);
    };
    const auto not_met = [s = self, job, over](const caf::error& why) {
      over();
      calling_shell sh(s);
      if (sh.ended(job)) sh.fail(job, error(errc::peer_down, std::string("no connection to it: ") + to_exception(why).what()));
    };
    base::meet(job->to, left, met, not_met);
  }

  /// Sends gradients. Counted gradients leave as a question: the other node answers when it has taken them (GW-14).
  void send_gradients(const contracts::outgoing_gradients_ptr& what) {
    const auto gateway = here.directory().gateway(what->to);
    if (!gateway) return;
    if (!what->credit) return caf::anon_send(gateway, std::move(what->message));
    transfers::request_taken(self, what->to, gateway, std::move(what->message), [what] { what->credit.give_back(); });
  }

  /// Sets an alarm that fails the call at its deadline if the call has not left by then.
  void limit(const contracts::outgoing_call_ptr& job) { base::set_deadline(job, time_left(*job)); }

  static std::chrono::milliseconds time_left(const contracts::outgoing_call& job) {
    const std::chrono::nanoseconds waited(support::steady_ns() - job.begin_ns);
    return std::max(job.deadline - std::chrono::duration_cast<std::chrono::milliseconds>(waited), shortest_limit);
  }

  static error no_answer(const contracts::outgoing_call& job) {
    return error(errc::deadline_passed, "no answer within " + support::seconds_text(job.deadline));
  }

  void leave(const std::vector<contracts::outgoing_call_ptr>& ready) {
    for (const auto& job : ready)
      if (is_open(job)) leave(job);
  }

  void leave(const contracts::outgoing_call_ptr& job) {
    auto& payload = job->request.payload;
    const auto object = job->request.target;
    const bool waits = object && state.shipping.contains(object);  // behind an earlier call on the object
    if (!waits && !transfers::goes_ahead(here, job->to, payload.tensors)) return request(job);
    if (!job->is_limited()) limit(job);
    if (object) ++state.shipping[object];
    transfers::ship(self, job->to, payload.tensors, payload.ahead, [s = self, job, object] {
      calling_shell sh(s);
      if (object && --sh.state.shipping[object] == 0) sh.state.shipping.erase(object);
      job->ended ? transfers::call_off(sh.here, job->to, job->request.payload.ahead) : sh.request(job);
    });
  }

  void request(const contracts::outgoing_call_ptr& job) {
    auto gateway = here.directory().gateway(job->to);
    if (!gateway) return;  // the message peer_down is on its way and will fail the call
    if (state.bulky.holds(job)) {
      if (!job->is_limited()) limit(job);
      return;
    }
    here.deadlines().call_off(job->expiry);
    const auto left = time_left(*job);
    job->request.deadline_ns = std::chrono::nanoseconds(left).count();
    state.bulky.leaves(job);
    const auto question = services::timed_request(self, here, gateway, left, job->expiry, job->request);
    job->asked = question.id();
    question.then([s = self, job](call_result& result) { calling_shell(s).answered(job, result); },
                  [s = self, job](const caf::error& reason) { calling_shell(s).not_answered(job, reason); });
    job->request.payload.tensors.clear();
  }

  void answered(const contracts::outgoing_call_ptr& job, call_result& result) {
    job->asked = std::nullopt;
    if (!ended(job)) return;
    if (job->record) job->record->joined(result.participants);
    if (job->record && result.is_child) job->record->adopt(job->to);
    parts.calls.finish(*job, result);
    request_all(state.bulky.ended(*job));
  }

  void not_answered(const contracts::outgoing_call_ptr& job, const caf::error& reason) {
    job->asked = std::nullopt;
    // Only the caller's own alarm is a timeout of CAF: a deadline that passed for the other node is an error of troupe's.
    if (ended(job)) fail(job, reason == caf::sec::request_timeout ? no_answer(*job) : to_exception(reason));
  }

  bool is_open(const contracts::outgoing_call_ptr& job) const {
    const auto found = state.calls.find(job->request.payload.context);
    return found != state.calls.end() && found->second.contains(job);
  }

  /// Removes the call from the open calls. False if the call has ended already.
  bool ended(const contracts::outgoing_call_ptr& job) {
    here.deadlines().call_off(job->expiry);
    auto found = state.calls.find(job->request.payload.context);
    if (found == state.calls.end() || found->second.erase(job) == 0) return false;
    if (found->second.empty()) state.calls.erase(found);
    return true;
  }

  /// Pre: the call is no longer among the open calls.
  void fail(const contracts::outgoing_call_ptr& job, const error& reason) {
    here.deadlines().call_off(job->expiry);
    parts.calls.fail(*job, reason);
    if (const auto question = std::exchange(job->asked, std::nullopt))
      support::end_request(self->ctrl(), *question, make_error(reason.code(), reason.what()));
    leave(state.late.ended(*job));
    request_all(state.bulky.ended(*job));
  }

  void request_all(const std::vector<contracts::outgoing_call_ptr>& calls) {
    for (const auto& job : calls) is_open(job) ? request(job) : transfers::call_off(here, job->to, job->request.payload.ahead);
  }

  void fail_all(const std::unordered_set<contracts::outgoing_call_ptr>& calls, const error& reason) {
    for (const auto& job : calls) fail(job, reason);
  }
};

template <class Self>
calling_shell(Self) -> calling_shell<Self>;

}  // namespace troupe::nodes
