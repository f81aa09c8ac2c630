// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/burst_runner.hpp>

#include <memory>
#include <utility>
#include <vector>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/passes/burst.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/support/activity.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/support/work_times.hpp>
#include <troupe/actors/tracing/operator_log.hpp>
#include <troupe/actors/tracing/tracer.hpp>
#include <troupe/engine/protocol/weight_throwing.hpp>

namespace troupe::passes {

namespace {

/// Sends the spans of a burst to the node that started the pass, for the trace of that node.
void send_spans(uses<with_self, with_directory, with_recorder> here, node_id initiator, tracing::trace_span whole,
                std::vector<tracing::trace_span> spans) {
  if (initiator == here.self.id()) {
    for (auto& span : spans) {
      span.track = "backward";
      here.recorder.record(std::move(span));
    }
    return;
  }
  const auto gateway = here.directory.gateway(initiator);
  if (!gateway) return;
  tracing::trace_log log{std::move(spans), 0};
  whole.name = here.self.name() + ": " + whole.name;
  log.spans.insert(log.spans.begin(), std::move(whole));
  call_request message;
  message.what = requests::spans{here.self.name(), tracing::pack(log)};
  message.payload.message.node = here.self.id();
  here.directory.traffic.sent(initiator);
  caf::anon_send(gateway, std::move(message));
}

}  // namespace

void run_and_return(const run_services& here, contracts::burst_ptr work, const contracts::graph_task_actor& owner) {
  const auto begin = support::steady_ns();
  const bool mine = work->context.node == here.self.id();
  const bool wanted = mine ? here.recorder.profiling() : work->state->record->is_profiled.load();
  const auto spans = wanted ? std::make_shared<tracing::span_collector>() : nullptr;
  {
    const tracing::operator_log log(spans);
    run_burst(*work, here);
  }
  here.counts.functions_run += work->functions;
  const auto end = support::steady_ns();
  here.times.note("backward", end - begin);
  here.recorder.record("backward", "backward", begin, end);
  if (spans) send_spans(here, work->context.node, {"backward", "backward", begin, end, {}}, spans->take());
  const auto outcome = work->outcome;
  const auto& left = work->share.carried;
  const bool all_done = protocol::is_whole(left) && left.begun == left.settled + (work->share.settles ? 1 : 0);
  const bool complete = outcome && !work->failure && all_done && outcome->succeed();
  caf::anon_send(owner, std::move(work));
  if (complete) outcome->tell();  // last: the thread that waits for the pass may then end the node
}

}  // namespace troupe::passes
