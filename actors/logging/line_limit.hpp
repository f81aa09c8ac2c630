// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>

namespace troupe::logging {

/// Limits the lines of each kind, so that a flood of one event does not fill the disk: `most_at_once` lines at once, and after
/// that one line each `refill_ns`. One thread at a time may use it.
///   LL-1  lines of one kind never hold back lines of another kind. If `most_kinds` kinds have had lines lately, all further kinds of one
///         place in the code count as one kind.
///   LL-2  every line is either admitted or counted. Each count is returned once: with the next line that is admitted, or by
///         held().
class line_limit {
 public:
  static constexpr double most_at_once = 100;
  static constexpr std::int64_t refill_ns = 1'000'000'000;
  static constexpr std::size_t most_kinds = 4096;

  /// The kind of a line. `place`: an address that stands for the place in the code that logs. `about`: a number for whom or what the line
  /// is about; 0 if the place says it all.
  struct kind {
    const void* place = nullptr;
    std::uint64_t about = 0;
    bool operator==(const kind&) const = default;
  };

  struct verdict {
    bool admitted = false;
    std::uint64_t left_out = 0;  // lines of this kind that were held back since the last admitted line
  };

  /// Decides whether a line may be written.
  verdict ask(kind what, std::int64_t now_ns);
  /// Returns the counts that were not returned yet, and sets them to 0.
  std::uint64_t held();

 private:
  struct bucket {
    double room = most_at_once;
    std::int64_t filled_ns = 0;
    std::uint64_t left_out = 0;
  };

  struct hash {
    std::size_t operator()(const kind& what) const noexcept {
      return std::hash<const void*>()(what.place) ^ std::hash<std::uint64_t>()(what.about * 0x9e37'79b9'7f4a'7c15);
    }
  };

  static double room_at(const bucket& its, std::int64_t now_ns);
  void forget_quiet(std::int64_t now_ns);

  std::unordered_map<kind, bucket, hash> kinds_;
};

}  // namespace troupe::logging
