// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/actors/tracing/tracer.hpp>

namespace troupe::tracing {

/// The spans of one node. `offset_ns` is the steady clock of this node minus the steady clock of the node that makes the trace.
struct node_trace {
  std::string node;
  std::int64_t offset_ns = 0;
  std::vector<trace_span> spans;
};

/// A trace in the JSON format of Chrome and Perfetto. Each node is a process, in the given order; each track is a thread, or
/// several if spans of the track overlap and neither encloses the other. Times are microseconds since the first span, on the
/// clock of the node that makes the trace. Spans are in the order of their begins. `otherData.origin_ns` is the time of the
/// first span in nanoseconds. An arrow (two flow events) leads from the span "request" of a call to the span of the same flow
/// on the node that ran the call.
std::string chrome_trace(const std::vector<node_trace>& nodes);

}  // namespace troupe::tracing
