// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/piece_window.hpp>

#include <algorithm>
#include <utility>

namespace troupe::transfers {

piece_window::piece piece_window::leaves(int under_way, std::int64_t now_ns) {
  if (span_ns_ == 0) span_ns_ = now_ns;
  if (now_ns - span_ns_ >= memory_ns) begin_span(now_ns);
  return {now_ns, under_way >= size(), drains_ && under_way <= least};
}

void piece_window::answered(const piece& of, std::int64_t now_ns) {
  if (of.ends_draining) drains_ = false;
  const auto delay = std::max<std::int64_t>(1, now_ns - of.left_ns);
  delay_ns_ = std::min(delay_ns_, delay);
  const auto shortest = std::min(delay_ns_, delay_before_ns_);
  const auto may_wait = std::clamp(2 * shortest, least_wait_ns, most_wait_ns);
  const auto waited = static_cast<double>(delay - shortest) / static_cast<double>(may_wait);  // 1: as long as pieces may wait
  if (waited > 1) {
    starts_ = false;
    if (of.left_ns >= shrunk_ns_) shrink(std::max(0.5, 1 - (waited - 1) / 2), now_ns);
  } else if (of.fills) {
    window_ += starts_ ? 1 : (1 - waited) / window_;
  }
  window_ = std::clamp(window_, double{least}, double{most});
}

/// At most once in a round trip: the pieces on their way left with the larger window.
void piece_window::shrink(double by, std::int64_t now_ns) {
  window_ *= by;
  shrunk_ns_ = now_ns;
}

/// A span without answers leaves the delay of the span before.
void piece_window::begin_span(std::int64_t now_ns) {
  span_ns_ = now_ns;
  if (delay_ns_ == unknown) return;
  drains_ = true;
  delay_before_ns_ = std::exchange(delay_ns_, unknown);
}

}  // namespace troupe::transfers
