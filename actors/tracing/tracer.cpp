// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/tracing/tracer.hpp>

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace troupe::tracing {

void span_ring::add(trace_span span) {
  if (spans_.size() < capacity_) {
    spans_.push_back(std::move(span));
    return;
  }
  spans_[oldest_] = std::move(span);
  oldest_ = (oldest_ + 1) % capacity_;
  ++dropped_;
}

trace_log span_ring::log() const {
  trace_log result;
  result.spans.reserve(spans_.size());
  const auto middle = spans_.begin() + static_cast<std::ptrdiff_t>(oldest_);
  result.spans.insert(result.spans.end(), middle, spans_.end());
  result.spans.insert(result.spans.end(), spans_.begin(), middle);
  result.dropped = dropped_;
  return result;
}

tracer_actor::behavior_type make_tracer(tracer_actor::stateful_pointer<tracer_state> self, std::size_t capacity) {
  self->state.ring = span_ring(capacity);
  return {
    [=](trace_span& span) { self->state.ring.add(std::move(span)); },
    [=](support::collect_atom) { return self->state.ring.log(); },
  };
}

tracer_actor spawn_tracer(caf::actor_system& system, std::size_t capacity) { return system.spawn(make_tracer, capacity); }

trace_recorder::trace_recorder(tracer_actor to, bool enabled) : shared_(new shared{enabled, false, std::move(to)}) {}

void trace_recorder::enable(bool on) noexcept {
  if (shared_) shared_->enabled.store(on, std::memory_order_relaxed);
}

void trace_recorder::profile(bool on) noexcept {
  if (!shared_) return;
  if (on) enable(true);
  shared_->profiling.store(on, std::memory_order_relaxed);
}

void trace_recorder::record(trace_span span) const {
  if (enabled()) caf::anon_send(shared_->to, std::move(span));
}

void trace_recorder::record(std::string_view name, std::string_view category, std::int64_t begin_ns, std::int64_t end_ns,
                            std::string_view track, std::uint64_t flow) const {
  if (!enabled()) return;
  caf::anon_send(shared_->to, trace_span{std::string(name), std::string(category), begin_ns, end_ns,
                                         std::string(track.empty() ? category : track), flow});
}

}  // namespace troupe::tracing
