// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace troupe::support {

/// How long each kind of work took lately. Two kinds may share an entry. Any thread may use work_times.
class work_times {
 public:
  explicit work_times(std::int64_t short_ns) noexcept : short_ns_(short_ns) {}

  void note(std::string_view kind, std::int64_t ns) noexcept {
    auto& mean = means_[slot_of(kind)];
    const auto before = mean.load(std::memory_order_relaxed);
    mean.store(before == 0 ? ns + 1 : (before + ns) / 2 + 1, std::memory_order_relaxed);
  }
  /// Whether work of this kind took less than the `short_ns` of the constructor lately. False for a kind that never ran.
  bool is_short(std::string_view kind) const noexcept {
    const auto mean = means_[slot_of(kind)].load(std::memory_order_relaxed);
    return mean != 0 && mean < short_ns_;
  }

 private:
  static constexpr std::size_t slots = 256;
  static std::size_t slot_of(std::string_view kind) noexcept { return std::hash<std::string_view>{}(kind) % slots; }

  const std::int64_t short_ns_;
  std::array<std::atomic<std::int64_t>, slots> means_{};
};

}  // namespace troupe::support
