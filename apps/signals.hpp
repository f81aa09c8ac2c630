// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/signals_test.cpp, tests/apps/node_command_test.cpp, tests/apps/last_exit_test.cpp
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <optional>
#include <thread>

#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::apps {

/// Blocks SIGINT, SIGTERM and SIGHUP on the calling thread and on the threads that it starts, and ignores SIGPIPE and SIGXFSZ.
/// Call this function in main before any other thread exists. A signal to a thread that does not block it would end the
/// process.
void block_stop_signals();

/// Waits for SIGINT, SIGTERM and SIGHUP (blocked by block_stop_signals()) on a thread of its own. A process has at most one
/// stop_signal at a time. SIGHUP comes when the terminal of the process is closed. It also tells a service to read its files
/// again. A second signal may come from a person, because the program hangs. It may also be a copy of the first one: the
/// terminal sends a signal to all its processes, and a wrapper program passes the signal on.
///   SI-1  `on_signal` runs once, at the first signal, on the object's thread. It is no signal handler, so it may take locks
///         and allocate memory.
///   SI-2  wait() returns at once if a signal came before the call. Otherwise it returns when a signal comes.
///   SI-3  a second signal that comes `patience` after the first, or later, ends the process at once with status 128 + its
///         number. A second signal that comes sooner has no effect.
///   SI-4  with `on_hangup`, SIGHUP does not stop the program but runs `on_hangup` on the object's thread. Without `on_hangup`,
///         SIGHUP stops the program as SIGINT does. It then has no effect if the process was started with SIGHUP ignored, as by
///         nohup.
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

  /// Waits for the first signal, at most `timeout`. Returns its number; empty if no signal came.
  std::optional<int> wait_for(std::chrono::milliseconds timeout) const;

  /// Has the effect of SIGTERM, but is called by the program itself. `on_signal` runs on the calling thread.
  void request();

 private:
  void listen();
  void note(int number);

  std::function<void(int)> on_signal_;
  std::function<void()> on_hangup_;
  std::chrono::milliseconds patience_;
  std::atomic<int> number_{0};  // changes under the mutex
  mutable checked_mutex mutex_;
  mutable std::condition_variable came_;
  support::owned_descriptor signal_file_;
  support::owned_descriptor leave_file_;
  std::thread thread_;
};

/// Call this function first in main, before any other thread exists. In process 1 of a container it forks, and returns only in
/// the child. Process 1 then does only what FP-1 and FP-2 say. In any other process the function does nothing.
///   FP-1  process 1 reaps every process of the container whose parent has ended, so no zombie is left.
///   FP-2  process 1 passes signals on to the child. When the child ends, process 1 ends with the child's exit status, or with
///         128 + the number of the signal that ended the child.
void leave_first_process();

/// Limits how long a stop takes, whatever the program is doing.
///   LE-1  after a stop signal the program has the time `patience` to end. When this time is over, `leave` runs, and the
///         process ends with status 128 + the signal's number.
///   LE-2  once `leave` has begun, disarm() does not return. So its caller does nothing more while the process ends.
class last_exit {
 public:
  /// `leave` runs on a thread of its own. `leave` must be brief and must not throw.
  last_exit(const stop_signal& stop, std::chrono::milliseconds patience, std::function<void()> leave);
  ~last_exit() { disarm(); }

  /// Changes the patience. Holds also if a stop signal has already come.
  void set_patience(std::chrono::milliseconds patience) noexcept { patience_ = patience; }

  void disarm();

 private:
  std::atomic<std::chrono::milliseconds> patience_;
  std::jthread thread_;
};

}  // namespace troupe::apps
