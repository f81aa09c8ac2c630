// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace troupe::services {

/// Numbers the messages of a node (a Lamport clock). Any thread may use message_clock.
///   MC-1  a message that was sent because of another message has a higher number than that message. Above 2^62 this holds only
///         within the limits of MC-2.
///   MC-2  no message of another node makes this node give a number twice: it raises the clock to 2^62 + 2^20 at most, and a
///         clock above 2^62 by 2^20 at most. So it takes 2^42 messages to reach the numbers that nodes refuse
///         (highest_message_number).
class message_clock {
 public:
  /// The number of a new message.
  std::uint64_t next_number() noexcept { return last_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// To be called with the number of each message that came: next_number() then returns only higher numbers.
  void witness(std::uint64_t number) noexcept {
    auto seen = last_.load(std::memory_order_relaxed);
    const auto believed = [&] { return std::min(number, std::max(seen, most_at_once) + longest_leap); };
    while (seen < number && !last_.compare_exchange_weak(seen, believed(), std::memory_order_relaxed)) {
    }
  }

 private:
  static constexpr std::uint64_t most_at_once = std::uint64_t{1} << 62;  // no node counts so far in a century
  static constexpr std::uint64_t longest_leap = std::uint64_t{1} << 20;

  std::atomic<std::uint64_t> last_{0};
};

}  // namespace troupe::services
