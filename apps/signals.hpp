// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace troupe::apps {

/// Blocks SIGINT and SIGTERM on the calling thread and those it makes, and ignores SIGPIPE. Call it first in main, before any
/// thread exists: a thread without the mask would be ended by the signal.
void block_stop_signals();

/// Waits for SIGINT and SIGTERM (blocked by block_stop_signals) on a thread of its own. One at a time in a process.
///   SI-1  the callback runs once, at the first signal, on that thread; it may take locks and allocate.
///   SI-2  `wait` returns at a signal that came before it as well as at one that comes later.
///   SI-3  a signal that comes `patience` after the first, or later, ends the process at once with 128 + its number, so that a
///         stop that hangs can be cut short. One that comes sooner is taken for the same wish: wrappers pass on what a terminal
///         sent to all.
class stop_signal {
 public:
  /// `on_signal` gets the signal's number; it must be brief and not throw.
  explicit stop_signal(std::function<void(int)> on_signal = {}, std::chrono::milliseconds patience = std::chrono::seconds(1));
  ~stop_signal();
  stop_signal(const stop_signal&) = delete;
  stop_signal& operator=(const stop_signal&) = delete;

  /// A signal came, or request() was called.
  bool requested() const noexcept { return number_.load(std::memory_order_acquire) != 0; }

  /// The number of the signal that came first (SIGTERM for request()); 0 before.
  int number() const noexcept { return number_.load(std::memory_order_acquire); }

  /// Waits for the first signal; returns its number.
  int wait() const;

  /// The same, at most so long; empty when none came.
  std::optional<int> wait_for(std::chrono::milliseconds timeout) const;

  /// Stops as SIGTERM would, from inside the program. The callback runs on the calling thread.
  void request();

 private:
  void listen();
  void note(int number);

  std::function<void(int)> on_signal_;
  std::chrono::milliseconds patience_;
  std::atomic<int> number_{0};
  mutable std::mutex mutex_;
  mutable std::condition_variable came_;
  int signal_file_;
  int leave_file_;
  std::thread thread_;
};

}  // namespace troupe::apps
