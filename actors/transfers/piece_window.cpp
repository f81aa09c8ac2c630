// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/piece_window.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::transfers {

piece_window::piece piece_window::leaves(int under_way, std::int64_t now_ns) {
  if (span_ns_ == 0) span_ns_ = now_ns;
  if (under_way <= 1) taken_ns_ = now_ns;  // the way was idle: the time before says nothing about its rate
  if (now_ns - span_ns_ >= memory_ns) start_over(now_ns);
  return {now_ns, taken_, taken_ns_, under_way >= size(), drains_ && under_way <= least};
}

void piece_window::answered(const piece& of, std::int64_t now_ns) {
  ++taken_;
  if (of.measures) drains_ = false;
  taken_ns_ = now_ns;
  delay_ns_ = std::min(delay_ns_, std::max<std::int64_t>(1, now_ns - of.left_ns));
  const auto rate =
    static_cast<double>(taken_ - of.taken) / static_cast<double>(std::max<std::int64_t>(1, now_ns - of.taken_ns));
  // A window that was not full does not show how much the way can take. It shows that the way can take this much.
  if (of.fills || rate > std::max(rate_, rate_before_)) rate_ = std::max(rate_, rate);
}

int piece_window::size() const {
  const auto delay = std::min(delay_ns_, delay_before_ns_);
  const auto rate = std::max(rate_, rate_before_);
  if (rate == 0 || drains_) return least;
  const auto held = std::ceil(2 * rate * static_cast<double>(delay));
  return static_cast<int>(std::clamp(held, double{least}, double{most}));
}

/// A span without pieces leaves the rate and the delay of the span before.
void piece_window::start_over(std::int64_t now_ns) {
  span_ns_ = now_ns;
  if (rate_ == 0) return;
  drains_ = true;
  rate_before_ = std::exchange(rate_, 0);
  delay_before_ns_ = std::exchange(delay_ns_, std::numeric_limits<std::int64_t>::max());
}

}  // namespace troupe::transfers
