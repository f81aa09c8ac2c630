// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/future_test.cpp, tests/actors/waiting_bursts_test.cpp
#pragma once

namespace troupe {

/// The observer of a thread is called when the thread is about to block on a future, and when the thread goes on. A pool can
/// free the thread's worker slot for the time in between.
class blocking_observer {
 public:
  virtual ~blocking_observer() = default;
  virtual void blocked() = 0;
  virtual void resumed() = 0;
  /// Whether blocked() and resumed() are also called for worker threads that wait on behalf of this thread.
  virtual bool hears_workers() const noexcept { return false; }
  /// The observer of this thread, or null.
  static blocking_observer*& current();
};

}  // namespace troupe
