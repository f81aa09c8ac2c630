// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/failures_test.cpp, tests/actors/waiting_calls_test.cpp
#pragma once

#include <algorithm>
#include <chrono>

#include <troupe/actors/support/call_scope.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/support/time_of_part.hpp>

namespace troupe::support {

/// The deadline of a call, a pass or a look-up: what runs on behalf of another call ends shortly before that call does.
inline std::chrono::milliseconds within_bounds(std::chrono::milliseconds deadline) {
  const auto bounds = call_scope::current_bounds();
  if (bounds.until_ns == 0) return deadline;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::nanoseconds(bounds.until_ns - steady_ns()));
  return std::min(deadline, time_of_part(left, bounds.depth));
}

}  // namespace troupe::support
