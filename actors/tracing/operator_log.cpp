// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/tracing/operator_log.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

#include <ATen/record_function.h>

namespace troupe::tracing {

namespace {

thread_local operator_log* innermost = nullptr;
thread_local span_collector* collecting = nullptr;

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

struct begun final : at::ObserverContext {
  std::int64_t at_ns = now_ns();
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction&) { return std::make_unique<begun>(); }

void end(const at::RecordFunction& function, at::ObserverContext* context) {
  if (collecting != nullptr && context != nullptr)
    collecting->add({function.name(), "operator", static_cast<begun*>(context)->at_ns, now_ns(), {}});
}

}  // namespace

void span_collector::add(trace_span span) {
  const checked_lock lock(mutex_);
  if (spans_.size() < most) spans_.push_back(std::move(span));
}

std::vector<trace_span> span_collector::take() {
  const checked_lock lock(mutex_);
  return std::exchange(spans_, {});
}

operator_log::operator_log(span_collector_ptr into) : outer_(innermost), into_(std::move(into)) {
  innermost = this;
  collecting = into_.get();
  if (into_ && (outer_ == nullptr || !outer_->into_))
    handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(begin, end)
        .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
}

operator_log::~operator_log() {
  if (handle_ != 0) at::removeCallback(handle_);
  innermost = outer_;
  collecting = outer_ == nullptr ? nullptr : outer_->into_.get();
}

span_collector_ptr operator_log::current() { return innermost == nullptr ? nullptr : innermost->into_; }

void fit_within(std::vector<trace_span>& spans, std::int64_t begin_ns, std::int64_t end_ns) {
  if (spans.empty()) return;
  const auto middle = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>((static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)) / 2);
  };
  // Another node may send any times, so the arithmetic is unsigned: it wraps around where signed arithmetic would overflow.
  const auto shift = static_cast<std::uint64_t>(middle(begin_ns, end_ns)) -
                     static_cast<std::uint64_t>(middle(spans.front().begin_ns, spans.front().end_ns));
  const auto moved = [&](std::int64_t x) {
    return std::clamp(static_cast<std::int64_t>(static_cast<std::uint64_t>(x) + shift), begin_ns, end_ns);
  };
  for (auto& span : spans) {
    span.begin_ns = moved(span.begin_ns);
    span.end_ns = moved(span.end_ns);
  }
}

}  // namespace troupe::tracing
