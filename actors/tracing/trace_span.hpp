// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/messages/ids.hpp>

namespace troupe::tracing {

/// Work of one node from begin to end, on the node's steady clock in nanoseconds. Spans of one track ("calls", "backward")
/// share rows.
struct trace_span {
  std::string name;
  std::string category;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::string track;
  std::uint64_t flow = 0;  // of a call: the number that the spans of its two ends share (flow_of). 0: none

  bool operator==(const trace_span&) const = default;
};

/// The flow of the call that a message brings.
inline std::uint64_t flow_of(const message_id& call) noexcept { return std::hash<message_id>{}(call); }

/// a - b, in nanoseconds. Another node may send any times: a difference that is too large wraps around.
constexpr std::int64_t time_minus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

/// What a node recorded: the newest spans, and how many older spans were dropped.
struct trace_log {
  std::vector<trace_span> spans;
  std::uint64_t dropped = 0;

  bool operator==(const trace_log&) const = default;
};

/// The most spans that the tracer of a node keeps.
inline constexpr std::size_t most_of_node = 200'000;
/// The most spans that a call or a burst brings: those of a span_collector, and those of the call itself.
inline constexpr std::size_t most_of_call = 20'000 + 2;

/// A log as bytes, to travel as an attribute. Names that repeat are written once; names are cut after 256 bytes. If the names have more
/// than 4 MiB together, the oldest spans are left out, and counted as dropped.
std::string pack(const trace_log& log);

/// Reads the bytes of pack(). Throws troupe::error (malformed_message) for other bytes, and for more than `most` spans: a span of five
/// bytes may take a kilobyte of memory.
trace_log unpack(std::string_view bytes, std::size_t most = most_of_call);

}  // namespace troupe::tracing
