// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <unordered_map>

namespace troupe::logging {

/// Keeps a flood of one event from filling the disk: lines of one kind may come in bursts of `most_at_once`, and in the long run one
/// each `refill_ns`. Not safe to use from several threads at a time.
///   LL-1  lines of one kind never hold back lines of another.
///   LL-2  every line is either admitted or counted, and each count is told once: with the next line that is admitted, or by held().
class line_limit {
 public:
  static constexpr double most_at_once = 100;
  static constexpr std::int64_t refill_ns = 1'000'000'000;

  struct verdict {
    bool admitted = false;
    std::uint64_t left_out = 0;  // lines of this kind since the last one that was admitted
  };

  /// `kind`: an address that stands for the place in the code.
  verdict ask(const void* kind, std::int64_t now_ns);
  /// How many lines were held back and not told yet. Forgets them.
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
