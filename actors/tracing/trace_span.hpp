// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::tracing {

/// A stretch of work on one node, by its steady clock in nanoseconds. Spans of one track ("calls", "backward") share rows.
struct trace_span {
  std::string name;
  std::string category;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::string track;

  bool operator==(const trace_span&) const = default;
};

/// a - b, in nanoseconds. Another node may send any times: a difference that overflows wraps around.
constexpr std::int64_t time_minus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

/// What a node recorded: the newest spans, and how many older ones were dropped for them.
struct trace_log {
  std::vector<trace_span> spans;
  std::uint64_t dropped = 0;

  bool operator==(const trace_log&) const = default;
};

/// A log as bytes, to travel as an attribute; names that repeat are written once, and cut after 256 bytes.
std::string pack(const trace_log& log);

/// Reads what pack() wrote; throws troupe::error (malformed_message) for anything else.
trace_log unpack(std::string_view bytes);

}  // namespace troupe::tracing
