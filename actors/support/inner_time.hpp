// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/support/inner_time_test.cpp, tests/actors/failures_test.cpp, tests/actors/waiting_calls_test.cpp
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include <troupe/actors/support/call_scope.hpp>
#include <troupe/actors/support/steady_clock.hpp>

namespace troupe::support {

/// The time for inner work, if the work around it has the time `left`: a hundredth less, and at most 100 ms less. So the error
/// of inner work comes before the outer work has to end. `depth`: how many works, one inside the other, are around it. At
/// great depth less is taken off, so that thousands of levels fit.
inline std::chrono::milliseconds inner_time(std::chrono::milliseconds left, std::size_t depth = 0) {
  using std::chrono::milliseconds;
  constexpr std::size_t shallow = 8;
  const auto for_reason =
    std::clamp(left / 100, milliseconds(depth < shallow ? 1 : 0), milliseconds(100)) / static_cast<int>(1 + depth / shallow);
  return std::max(left - for_reason, milliseconds(1));
}

/// The deadline of a call, a pass or a look-up: work on behalf of another call ends shortly before the deadline of that call.
inline std::chrono::milliseconds within_bounds(std::chrono::milliseconds deadline) {
  const auto bounds = call_scope::current_bounds();
  if (bounds.until_ns == 0) return deadline;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::nanoseconds(bounds.until_ns - steady_ns()));
  return std::min(deadline, inner_time(left, bounds.depth));
}

}  // namespace troupe::support
