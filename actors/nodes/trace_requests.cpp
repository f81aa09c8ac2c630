// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/profiling_test.cpp
#include <troupe/actors/nodes/serve_request.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <caf/scoped_actor.hpp>

#include <troupe/actors/nodes/node_services.hpp>
#include <troupe/actors/support/logger_release.hpp>
#include <troupe/actors/tracing/tracer.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::nodes {

namespace {

constexpr std::chrono::seconds patience{30};

/// The steady clock of the named node minus that of this node, in nanoseconds.
std::int64_t clock_of(node_services& here, const std::string& name) {
  const support::logger_release lets_go;
  caf::scoped_actor self{*here.actors.system};
  const auto& membership = here.actors.membership;
  if (!membership) return 0;
  const auto fail = [&](const caf::error& reason) { throw to_exception(reason, "the clock of node '" + name + "'"); };
  node_id id;
  std::int64_t offset = 0;
  self
    ->request(membership, patience + std::chrono::seconds(1), support::find_atom::value, name,
              std::chrono::nanoseconds(patience).count())
    .receive([&](const contracts::peer_up& found) { id = found.who.id; }, fail);
  self->request(membership, patience, support::clock_atom::value, id).receive([&](std::int64_t ns) { offset = ns; }, fail);
  return offset;
}

}  // namespace

/// Replies with the spans of this node.
call_reply serve(node_services& here, call_arguments&, const requests::trace&) {
  const support::logger_release lets_go;
  caf::scoped_actor self{*here.actors.system};
  call_reply reply;
  self->request(here.actors.tracer, patience, support::collect_atom::value)
    .receive([&](const tracing::trace_log& log) { reply.values["spans"] = tracing::pack(log); },
             [](const caf::error& reason) { throw to_exception(reason); });
  return reply;
}

/// Records spans of another node for this node's trace, with times on this node's clock.
call_reply serve(node_services& here, call_arguments&, const requests::spans& what) {
  auto spans = tracing::unpack(what.spans).spans;
  const auto offset = clock_of(here, what.node);
  for (auto& span : spans) {
    span.begin_ns = tracing::time_minus(span.begin_ns, offset);
    span.end_ns = tracing::time_minus(span.end_ns, offset);
    span.track = "backward on " + what.node;
    here.recorder.record(std::move(span));
  }
  return {};
}

}  // namespace troupe::nodes
