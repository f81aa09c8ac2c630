// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe::support {

/// Nanoseconds of the steady clock, the one that heartbeats compare.
inline std::int64_t steady_ns() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace troupe::support
