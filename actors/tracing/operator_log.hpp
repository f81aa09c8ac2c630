// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <troupe/actors/tracing/tracer.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::tracing {

/// The spans of one call or burst. The thread that runs the call or burst adds spans. The threads that bring the answers to
/// calls of this thread add spans too. Any thread may use a span_collector.
class span_collector {
 public:
  static constexpr std::size_t most = most_of_call - 2;  // later spans are dropped

  void add(trace_span span);
  std::vector<trace_span> take();

 private:
  checked_mutex mutex_;
  std::vector<trace_span> spans_ TROUPE_GUARDED_BY(mutex_);
};
using span_collector_ptr = std::shared_ptr<span_collector>;

/// While an operator_log lives, it records spans of libtorch's operators and autograd functions that its thread runs, and of
/// calls that the thread makes. A thread has one current log; the end of a nested log restores the outer one.
///   OL-1  a log without a collector costs nothing, and hides the outer log.
class operator_log {
 public:
  explicit operator_log(span_collector_ptr into);
  ~operator_log();
  operator_log(const operator_log&) = delete;
  operator_log& operator=(const operator_log&) = delete;

  /// The collector of this thread's innermost log, or null.
  static span_collector_ptr current();

 private:
  operator_log* outer_;
  span_collector_ptr into_;
  std::uint64_t handle_ = 0;
};

/// Moves spans of another node to the clock of this node. The first span encloses the others; it is moved to the middle of
/// [begin_ns, end_ns], the time that this node waited for the spans. No span reaches beyond that time.
void fit_within(std::vector<trace_span>& spans, std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace troupe::tracing
