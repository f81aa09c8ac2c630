// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::bench {

/// Passes TCP connections on to another address. Each byte leaves `delay` after it came, in both directions, and the rate has
/// no other limit. A direction of a connection holds at most `most_held` bytes.
class delay_relay {
 public:
  static constexpr std::size_t most_held = std::size_t{64} << 20;

  delay_relay(const std::string& listen_at, std::string to, std::uint16_t to_port, std::chrono::milliseconds delay);

  std::uint16_t port() const;
  /// Serves until the process ends.
  [[noreturn]] void run();

 private:
  support::owned_descriptor listening_;
  std::string to_;
  std::uint16_t to_port_;
  std::chrono::milliseconds delay_;
};

}  // namespace troupe::bench
