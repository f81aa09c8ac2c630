// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

namespace troupe::support {

/// Computes the largest size among the last uses of a buffer, so that the buffer can hold this much memory between uses.
class recent_peak {
 public:
  /// The peak covers at least this many uses, and at most twice as many.
  static constexpr int window = 32;

  /// Notes a use of `bytes` bytes. Returns the peak, this use included.
  std::size_t add(std::size_t bytes) noexcept {
    now_ = std::max(now_, bytes);
    const auto result = std::max(now_, before_);
    if (++uses_ == window) {
      before_ = std::exchange(now_, 0);
      uses_ = 0;
    }
    return result;
  }

 private:
  std::size_t before_ = 0;  // peak of the last full window
  std::size_t now_ = 0;     // peak of the current window
  int uses_ = 0;
};

}  // namespace troupe::support
