// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <unordered_map>

namespace troupe::logging {

/// Limits the lines of each kind, so that a flood of one event does not fill the disk: `most_at_once` lines at once, and after
/// that one line each `refill_ns`. One thread at a time may use it.
///   LL-1  lines of one kind never hold back lines of another kind.
///   LL-2  every line is either admitted or counted. Each count is returned once: with the next line that is admitted, or by
///         held().
class line_limit {
 public:
  static constexpr double most_at_once = 100;
  static constexpr std::int64_t refill_ns = 1'000'000'000;

  struct verdict {
    bool admitted = false;
    std::uint64_t left_out = 0;  // lines of this kind that were held back since the last admitted line
  };

  /// Decides whether a line may be written. `kind`: an address that stands for the place in the code that logs.
  verdict ask(const void* kind, std::int64_t now_ns);
  /// Returns the counts that were not returned yet, and sets them to 0.
  std::uint64_t held();

 private:
  struct bucket {
    double room = most_at_once;
    std::int64_t filled_ns = 0;
    std::uint64_t left_out = 0;
  };

  std::unordered_map<const void*, bucket> kinds_;
};

}  // namespace troupe::logging
