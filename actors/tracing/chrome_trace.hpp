// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/actors/tracing/trace_span.hpp>

namespace troupe::tracing {

/// The spans of one node. `offset_ns` is its steady clock minus that of the node which draws the trace.
struct node_trace {
  std::string node;
  std::int64_t offset_ns = 0;
  std::vector<trace_span> spans;
};

/// A trace in the JSON format of Chrome and Perfetto: a process row for each node, in the given order, a thread row for
/// each track, more of them where spans of a track overlap without one lying within the other. Times are microseconds since
/// the first span, on one clock, in order; that span's time in nanoseconds is `otherData.origin_ns`.
std::string chrome_trace(const std::vector<node_trace>& nodes);

}  // namespace troupe::tracing
