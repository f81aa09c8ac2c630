// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace troupe::test {

/// Passes the bytes of one connection on, and keeps those that the caller sends. For programs without Boost.Test.
class recording_relay {
 public:
  /// Listens at a free port of 127.0.0.1 for one caller, and connects to the port `to` for it. Throws std::system_error.
  explicit recording_relay(std::uint16_t to);
  ~recording_relay();
  recording_relay(const recording_relay&) = delete;
  recording_relay& operator=(const recording_relay&) = delete;

  std::uint16_t port() const;
  /// What the caller has sent. Waits until the connection is over.
  std::string sent();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace troupe::test
