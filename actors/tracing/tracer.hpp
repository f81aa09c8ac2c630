// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/tracing/tracer_test.cpp, tests/actors/tracing/trace_span_test.cpp
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <troupe/actors/support/atoms.hpp>
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

/// The flow of the call whose message has this id.
inline std::uint64_t flow_of(const message_id& call) noexcept { return std::hash<message_id>{}(call); }

/// a - b, in nanoseconds. Another node may send any times: a difference that is too large wraps around.
constexpr std::int64_t time_minus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

/// The spans that a node recorded: the newest spans, and how many older spans were dropped.
struct trace_log {
  std::vector<trace_span> spans;
  std::uint64_t dropped = 0;

  bool operator==(const trace_log&) const = default;
};

/// The most spans that the tracer of a node keeps.
inline constexpr std::size_t most_of_node = 200'000;
/// The most spans that travel with a call or a burst: those of a span_collector, and those of the call itself.
inline constexpr std::size_t most_of_call = 20'000 + 2;

/// A log as bytes, to travel as an attribute. Names that repeat are written once; names are cut after 256 bytes. If the names
/// have more than 4 MiB together, the oldest spans are left out, and counted as dropped.
std::string pack(const trace_log& log);

/// Reads the bytes of pack(). Throws troupe::error (malformed_message) for other bytes, and for more than `most` spans, because
/// a span of five bytes may take a kilobyte of memory.
trace_log unpack(std::string_view bytes, std::size_t most = most_of_call);

/// Stores the newest spans of a node.
///   TR-1  a tracer holds at most `capacity` spans; the oldest are dropped, and the dropped spans are counted.
///   TR-2  a recorder that is turned off sends nothing and copies nothing.
using tracer_actor = caf::typed_actor<caf::reacts_to<trace_span>,
                                      caf::replies_to<support::collect_atom>::with<trace_log>>;  // oldest first

/// A ring buffer of spans.
class span_ring {
 public:
  explicit span_ring(std::size_t capacity) : capacity_(capacity == 0 ? 1 : capacity) {}
  void add(trace_span span);
  /// Returns the spans, the oldest first.
  trace_log log() const;

 private:
  std::size_t capacity_;
  std::size_t oldest_ = 0;
  std::uint64_t dropped_ = 0;
  std::vector<trace_span> spans_;
};

struct tracer_state {
  static inline const char* name = "tracer";
  span_ring ring{most_of_node};
};

tracer_actor::behavior_type make_tracer(tracer_actor::stateful_pointer<tracer_state> self, std::size_t capacity);

/// Spawns a tracer on the scheduler. An exit message ends it.
tracer_actor spawn_tracer(caf::actor_system& system, std::size_t capacity = most_of_node);

/// Records spans from any thread. Copies share one switch. A default-constructed recorder records nothing.
class trace_recorder {
 public:
  trace_recorder() = default;
  trace_recorder(tracer_actor to, bool enabled);

  bool enabled() const noexcept { return shared_ && shared_->enabled.load(std::memory_order_relaxed); }
  void enable(bool on) noexcept;

  /// Whether calls and passes of this node collect spans of what they run, on any node. False unless enabled().
  bool profiling() const noexcept { return enabled() && shared_->profiling.load(std::memory_order_relaxed); }
  void profile(bool on) noexcept;

  /// Records a finished span, in nanoseconds of the steady clock. If no track is given, the category is the track.
  void record(std::string_view name, std::string_view category, std::int64_t begin_ns, std::int64_t end_ns,
              std::string_view track = {}, std::uint64_t flow = 0) const;
  void record(trace_span span) const;

 private:
  struct shared {
    std::atomic<bool> enabled;
    std::atomic<bool> profiling{false};
    tracer_actor to;
  };
  std::shared_ptr<shared> shared_;
};

}  // namespace troupe::tracing

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::tracing::trace_span)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::tracing::trace_log)
