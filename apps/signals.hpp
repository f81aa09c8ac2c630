// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/signals_test.cpp, tests/apps/node_command_test.cpp, tests/apps/last_exit_test.cpp
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::apps {

/// Blocks SIGINT, SIGTERM and SIGHUP on the calling thread and on the threads that it starts, and ignores SIGPIPE. To be called
/// first in main, before any other thread exists: a signal on a thread that does not block it would end the process.
void block_stop_signals();

/// Waits for SIGINT, SIGTERM and SIGHUP (blocked by block_stop_signals) on a thread of its own. A process has at most one such
/// object at a time. SIGHUP comes when the terminal of the process is gone. To services it means that they have to read their
/// files again. A person repeats a signal to end a program whose stop hangs. But a second signal may also be a copy of the
/// first: the terminal sends a signal to all processes, and wrapper programs then pass the signal on.
///   SI-1  the callback runs once, at the first signal, on that thread. The callback may take locks and allocate memory.
///   SI-2  `wait` returns for a signal that came before the call, and for one that comes later.
///   SI-3  a second signal that comes `patience` after the first, or later, ends the process at once with 128 + its number. A
///         second signal that comes sooner changes nothing.
///   SI-4  with `on_hangup`, SIGHUP does not stop the program: on_hangup runs, on that thread. Without `on_hangup`, SIGHUP
///         stops as SIGINT does, but has no effect in a process that was started with SIGHUP ignored, as by nohup.
class stop_signal {
 public:
  /// `on_signal` gets the signal's number. Both functions must be brief and must not throw.
  explicit stop_signal(std::function<void(int)> on_signal = {}, std::chrono::milliseconds patience = std::chrono::seconds(1),
                       std::function<void()> on_hangup = {});
  ~stop_signal();

  /// True if a signal came or request() was called.
  bool requested() const noexcept { return number_.load(std::memory_order_acquire) != 0; }

  /// The number of the first signal (SIGTERM for request()); 0 if none came.
  int number() const noexcept { return number_.load(std::memory_order_acquire); }

  int wait() const;

  /// Waits for the first signal, at most `timeout`; empty if none came.
  std::optional<int> wait_for(std::chrono::milliseconds timeout) const;

  /// Has the effect of SIGTERM, from inside the program. The callback runs on the calling thread.
  void request();

 private:
  void listen();
  void note(int number);

  std::function<void(int)> on_signal_;
  std::function<void()> on_hangup_;
  std::chrono::milliseconds patience_;
  std::atomic<int> number_{0};
  mutable std::mutex mutex_;
  mutable std::condition_variable came_;
  support::owned_descriptor signal_file_;
  support::owned_descriptor leave_file_;
  std::thread thread_;
};

/// To be called first in main, before any thread exists. In process 1 of a container, this function forks and returns in the
/// child alone. Process 1 itself then does only what the kernel expects of process 1. In other processes the function does
/// nothing.
///   FP-1  process 1 reaps every process of the container whose parent has ended, so that no zombie stays.
///   FP-2  process 1 passes signals on, and ends as the child does: with its exit status, or 128 + the signal that has ended
///         the child.
void leave_first_process();

/// Limits how long a stop takes, whatever the program is doing.
///   LE-1  a stop leaves the program `patience` to end. After that time `leave` is run, and the process ends with 128 + the
///         signal's number.
///   LE-2  once `leave` has begun, disarm() does not return, so nothing runs beside the end of the process.
class last_exit {
 public:
  /// `leave` runs on a thread of its own. `leave` must be brief and must not throw.
  last_exit(const stop_signal& stop, std::chrono::milliseconds patience, std::function<void()> leave);
  ~last_exit() { disarm(); }

  /// Changes the patience, also for a stop that was asked for already.
  void set_patience(std::chrono::milliseconds patience) noexcept { patience_ = patience; }

  void disarm();

 private:
  std::atomic<std::chrono::milliseconds> patience_;
  std::jthread thread_;
};

}  // namespace troupe::apps
