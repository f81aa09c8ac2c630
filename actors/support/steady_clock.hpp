// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe::support {

/// The steady clock of this machine in nanoseconds. Each machine has a clock of its own; heartbeats estimate the difference
/// between the clocks of two nodes (clock_estimate).
inline std::int64_t steady_ns() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace troupe::support
