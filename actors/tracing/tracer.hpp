// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <troupe/actors/support/atoms.hpp>
#include <troupe/actors/tracing/trace_span.hpp>

namespace troupe::tracing {

/// Keeps the newest spans of a node.
///   TR-1  a tracer holds at most `capacity` spans; the oldest are dropped, and the dropped spans are counted.
///   TR-2  a recorder that is turned off sends nothing and copies nothing.
using tracer_actor = caf::typed_actor<caf::reacts_to<trace_span>,
                                      caf::replies_to<support::collect_atom>::with<trace_log>>;  // oldest first

/// A ring buffer of spans.
class span_ring {
 public:
  explicit span_ring(std::size_t capacity) : capacity_(capacity == 0 ? 1 : capacity) {}
  void add(trace_span span);
  /// The spans, oldest first.
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
