// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "apps/signals.hpp"

namespace troupe::apps {

/// Limits how long a stop takes, whatever the program is doing.
///   LE-1  a stop leaves the program `patience` to end. After that time `leave` is run, and the process ends with 128 + the
///         signal's number.
///   LE-2  once `leave` has begun, disarm() does not return, so nothing runs beside the end of the process.
class last_exit {
 public:
  /// `leave` runs on a thread of its own. `leave` must be brief and must not throw.
  last_exit(const stop_signal& stop, std::chrono::milliseconds patience, std::function<void()> leave);
  ~last_exit() { disarm(); }
  last_exit(const last_exit&) = delete;
  last_exit& operator=(const last_exit&) = delete;

  /// Changes the patience, also for a stop that was asked for already.
  void set_patience(std::chrono::milliseconds patience) noexcept { patience_ = patience; }

  void disarm();

 private:
  std::atomic<std::chrono::milliseconds> patience_;
  std::jthread thread_;
};

}  // namespace troupe::apps
