// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/piece_window.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace troupe::transfers {

namespace {

/// The difference of two clocks. It wraps around where it would overflow.
std::int64_t difference(std::int64_t of, std::int64_t to) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(of) - static_cast<std::uint64_t>(to));
}

}  // namespace

std::int64_t piece_window::shortest_time::excess(std::int64_t time_ns) {
  this_span_ = std::min(this_span_, time_ns);
  const auto result = static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(get());
  return static_cast<std::int64_t>(std::min<std::uint64_t>(result, std::numeric_limits<std::int64_t>::max()));
}

bool piece_window::shortest_time::begin_span() {
  if (this_span_ == unknown) return false;
  span_before_ = std::exchange(this_span_, unknown);
  return true;
}

piece_window::piece piece_window::leaves(std::uint64_t bytes, std::uint64_t under_way, std::int64_t now_ns) {
  if (span_ns_ == 0) span_ns_ = now_ns;
  if (now_ns - span_ns_ >= memory_ns) begin_span(now_ns);
  return {now_ns, bytes, under_way, !is_draining_ && under_way >= size(), is_draining_ && under_way <= smallest()};
}

void piece_window::answered(const piece& of, std::int64_t now_ns, std::optional<std::int64_t> taken_ns) {
  if (of.ends_draining) is_draining_ = false;
  const auto delay = std::max<std::int64_t>(1, now_ns - of.left_ns);
  auto waited_ns = round_trip_.excess(delay);
  auto without_answer_ns = delay;  // without the wait of the answer
  if (taken_ns) {
    const auto answer_waited = waited_ns - std::min(waited_ns, way_there_.excess(difference(*taken_ns, of.left_ns)));
    waited_ns -= answer_waited;
    without_answer_ns = delay - answer_waited;
  }
  const auto may_wait = std::clamp(2 * (delay - waited_ns), least_wait_ns, most_wait_ns);
  const auto waited = static_cast<double>(waited_ns) / static_cast<double>(may_wait);  // 1: as long as pieces may wait
  const auto bytes = static_cast<double>(of.bytes);
  if (of.fills && !is_in_slow_start_ && waited > 0.25) choose_size(of, without_answer_ns);
  if (waited > 1) {
    is_in_slow_start_ = false;
    if (of.left_ns >= shrunk_ns_) shrink(std::max(0.5, 1 - (waited - 1) / 2), now_ns);
  } else if (of.fills) {
    const auto a_round_trip = std::max(static_cast<double>(piece_bytes()), window_ / 8);
    window_ += is_in_slow_start_ ? bytes : (1 - waited) * a_round_trip * bytes / window_;
  }
  window_ = std::clamp(window_, static_cast<double>(smallest()), static_cast<double>(most));
}

/// Measures the rate of the path, and chooses the size of pieces by the rate. Pre: the window was full and pieces wait, so the
/// path has taken all bytes under way in the time until the answer. The mean is made of times, not of rates: a path may take
/// its first bytes after a pause at once, as the token bucket of a switch does, and these bytes must hardly count. The mean
/// covers several windows, so that a short stop of the path hardly counts either.
void piece_window::choose_size(const piece& of, std::int64_t delay_ns) {
  const auto ns_a_byte = static_cast<double>(delay_ns) / static_cast<double>(of.under_way);
  const auto weight = static_cast<double>(of.bytes) / std::max(static_cast<double>(mean_of), 4 * window_);
  ns_a_byte_ = ns_a_byte_ == 0 ? ns_a_byte : ns_a_byte_ + weight * (ns_a_byte - ns_a_byte_);
  constexpr double ns_a_second = 1e9;
  const auto rate = ns_a_second / ns_a_byte_;
  const auto small = rate < slow || (is_small_ && rate <= fast);
  if (std::exchange(is_small_, small) == small) return;
  round_trip_.forget();
  way_there_.forget();
  is_draining_ = is_draining_ || small;  // large pieces are still under way
}

/// Shrinks the window. To be called at most once in a round trip, because the pieces under way left with the larger window.
void piece_window::shrink(double by, std::int64_t now_ns) {
  window_ *= by;
  shrunk_ns_ = now_ns;
}

/// Begins a span. If no answer came in the current span, the delay of the span before it stays.
void piece_window::begin_span(std::int64_t now_ns) {
  span_ns_ = now_ns;
  way_there_.begin_span();
  if (round_trip_.begin_span()) is_draining_ = true;
}

}  // namespace troupe::transfers
