// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <troupe/messages/mutex.hpp>

namespace troupe::support {

/// Lets a thread wait until its program is asked to end: by SIGTERM or SIGINT, or by ask().
///   SE-1  wait() returns when SIGTERM or SIGINT comes, or if one was blocked and is pending. wait() also returns once ask()
///         was called, even before wait().
///   SE-2  after wait() signals do what they did before: a second signal ends the process.
///   SE-3  several threads may wait at once; a signal wakes all of them.
///   SE-4  while a thread waits, SIGHUP ends neither the wait nor the process: one of the waiting threads runs the `on_hangup`
///         of all of them, and no other wait() returns meanwhile. Exception: if the program has a handler of its own for
///         SIGHUP, or blocks SIGHUP on all threads, SIGHUP does what it did before.
class service_end {
 public:
  /// Makes wait() return. Any thread may call ask().
  void ask() noexcept;
  /// Waits until the program is asked to end (SE-1). `on_hangup`: runs for SIGHUP (SE-4); may be empty; must not throw. Throws
  /// std::system_error if the system gives no descriptor.
  void wait(const std::function<void()>& on_hangup = {});

 private:
  checked_mutex mutex_;
  bool asked_ TROUPE_GUARDED_BY(mutex_) = false;
  int waiter_ TROUPE_GUARDED_BY(mutex_) = -1;  // the descriptor that wakes the thread that waits
};

}  // namespace troupe::support
