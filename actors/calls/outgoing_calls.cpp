// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/outgoing_calls.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <caf/send.hpp>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/calls/failure_text.hpp>
#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/passes/open_contexts.hpp>
#include <troupe/actors/services/departures.hpp>
#include <troupe/actors/services/message_clock.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/outbox.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/activity.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/actors/tracing/tracer.hpp>
#include <troupe/messages/message_size.hpp>

namespace troupe::calls {

namespace {

std::string age_text(const contracts::outgoing_call& job) {
  return support::duration_text(support::steady_ns() - job.begin_ns);
}

}  // namespace

outgoing_calls::outgoing_calls(const used_services& here, passes::open_contexts& contexts)
    : here_(here), contexts_(contexts), credits_(here.options.send_limit) {}

void outgoing_calls::send(contracts::outgoing_call_ptr job, devices::staged arriving) {
  job->begin_ns = support::steady_ns();
  ++here_.counts.calls_made;
  ++here_.counts.calls_waiting;
  if (job->request.span != 0 && !job->spans) {
    checked_lock lock(mutex_);
    while (!slots_.insert(++job->slot).second) {
    }
  }
  if (const auto why = take_credit(*job)) return fail(*job, *why);
  if (auto id = job->request.payload.context) {
    if (!here_.directory.gateway(job->to)) return fail(*job, error(errc::peer_down, "it is down"));
    job->record = contexts_.find(id).record;
    if (!job->record || !job->record->add({std::move(job->send), 0}, job->to)) return fail(*job, contexts_.unknown(id));
    job->record->passes().brief(job->request);
    if (const auto failed = job->request.failed.size(); failed > max_entries && job->to != here_.self.id())
      return fail(*job, error(errc::misuse, std::to_string(failed) + " passes of the context " + to_string(id) +
                                              " have failed, and a message names at most " + std::to_string(max_entries) +
                                              "; open another context"));
  }
  if (arriving.events.empty()) {
    here_.directory.traffic.sent(job->to, job->request.payload.tensors, job->request.payload.packings);
    return caf::anon_send(here_.actors.gateway, std::move(job));
  }
  job->late = true;
  caf::anon_send(here_.actors.gateway, job);  // `gateway` fails the call at its deadline
  auto made_on = arriving.devices;
  auto compress = [here = uses<with_outbox>(here_), job] {
    auto& payload = job->request.payload;
    return here.outbox.compress(payload.tensors, payload.packings, payload.ahead, job->to, payload.format);
  };
  // When a copy has failed, the node may have ended. So `send` then does not use the services of the node.
  auto send = [here = uses<with_directory>(here_), gateway = here_.actors.gateway, job = std::move(job),
               made_on = std::move(made_on)](std::exception_ptr failure) {
    auto& payload = job->request.payload;
    if (failure)
      job->not_copied = contracts::not_copied(failure, made_on);
    else
      here.directory.traffic.sent(job->to, payload.tensors, payload.packings);
    caf::anon_send(gateway, support::arrived_atom::value, job);
  };
  here_.departures->post_in_steps(std::move(arriving), std::move(compress), std::move(send));
}

/// Waits for the credit of the call. Returns the error if the call gets none. A call of a node to itself needs none, because
/// nothing is copied; a drop needs none, because it frees memory.
std::optional<error> outgoing_calls::take_credit(contracts::outgoing_call& job) {
  if (job.to == here_.self.id() || std::holds_alternative<requests::drop>(job.request.what)) return std::nullopt;
  const auto bytes = bytes_of(job.request);
  using contracts::send_credits;
  const send_credits::account account{job.to, job.request.depth};
  const auto until = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(job.begin_ns)) + job.deadline;
  const auto why = [&](const std::string& text) {
    return text + ": " + std::to_string(credits_.under_way(account)) +
           " bytes of calls to it are not answered (settings::send_limit is " + std::to_string(here_.options.send_limit) + ")";
  };
  auto result = credits_.take(account, bytes, until);
  job.credit = std::move(result.taken);
  switch (result.how) {
    case send_credits::outcome::taken:
      break;
    case send_credits::outcome::busy:
      return error(errc::busy, why("a continuation can't wait until the node keeps up"));
    case send_credits::outcome::deadline_passed:
      return error(errc::busy, why("the node did not keep up within " + support::seconds_text(job.deadline)));
    case send_credits::outcome::stopped:
      return error(errc::stopping, "this node has stopped");
  }
  return std::nullopt;
}

void outgoing_calls::finish(contracts::outgoing_call& job, call_result& result) {
  here_.directory.traffic.received(job.to, result.payload.tensors, result.payload.packings);
  if (std::exchange(job.ended, true)) return;
  job.credit.give_back();
  --here_.counts.calls_waiting;
  here_.clock.witness(result.payload.message.number);
  if (job.request.span == 0)
    here_.recorder.record(job.label, "request", job.begin_ns, support::steady_ns(), {},
                          tracing::flow_of(job.request.payload.message));
  else
    take_spans(job, result.spans);
  here_.log.debug("calls", [&] { return description(job) + ": answered after " + age_text(job); });
  if (result.payload.detached && is_of_graph(job.request.what))
    here_.outbox.warn_detached("the call of '" + job.label + "' on node '" + here_.directory.name(job.to) + "'");
  call_reply reply{std::move(result.payload.tensors), std::move(result.values)};
  result.payload.tensors.clear();
  *job.answer = std::move(result.payload);
  job.reply.set_value(std::move(reply));
}

std::string outgoing_calls::description(const contracts::outgoing_call& job) const {
  const auto& context = job.request.payload.context;
  return "call of '" + job.label + "' on node '" + here_.directory.name(job.to) + "'" +
         (context ? " in context " + to_string(context) : "");
}

/// Stores the span of the call and the spans that came with its answer. They go to `job.spans` if another call made this call
/// and collects spans, otherwise to this node's trace.
void outgoing_calls::take_spans(contracts::outgoing_call& job, const std::string& from_callee) {
  std::vector<tracing::trace_span> spans;
  try {
    if (!from_callee.empty()) spans = tracing::unpack(from_callee).spans;
  } catch (const error&) {
    // Spans that can't be read do not make the call fail.
  }
  const auto end_ns = support::steady_ns();
  tracing::fit_within(spans, job.begin_ns, end_ns);
  spans.insert(spans.begin(), {job.label, "request", job.begin_ns, end_ns, {}, tracing::flow_of(job.request.payload.message)});
  const auto track = job.slot == 0 ? std::string() : "calls " + std::to_string(job.slot);
  for (auto& span : spans) {
    span.track = track;
    job.spans ? job.spans->add(std::move(span)) : here_.recorder.record(std::move(span));
  }
  checked_lock lock(mutex_);
  slots_.erase(job.slot);
}

void outgoing_calls::fail(contracts::outgoing_call& job, const error& why) {
  // A peer that gets the farewell of this node drops the objects and contexts of this node. The peer may then answer a call
  // with an error before this node has ended: the user gets the error `stopping` instead.
  const bool may_come_of_farewell =
    why.code() == errc::peer_down || why.code() == errc::unknown_function || why.code() == errc::unknown_context;
  const auto reason = may_come_of_farewell && here_.is_ending ? error(errc::stopping, "this node has stopped") : why;
  if (std::exchange(job.ended, true)) return;
  job.credit.give_back();
  --here_.counts.calls_waiting;
  ++here_.counts.calls_failed;
  if (job.request.span != 0) take_spans(job, {});
  here_.log.info("calls", [&] { return description(job) + ": failed after " + age_text(job) + ": " + reason.what(); });
  job.reply.set_error(error(reason.code(), failure_text(job.label, here_.directory.name(job.to), reason.what())));
}

}  // namespace troupe::calls
