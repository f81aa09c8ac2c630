// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include <troupe/messages/mutex.hpp>

namespace troupe::support {

/// Alarms for deadlines. Nearly all alarms are cancelled long before their time, so setting and cancelling an alarm wakes no
/// other thread, and a cancelled alarm leaves nothing in memory. (CAF's clock stores a timer until its time has come, so its
/// memory grows with the rate of timers times the deadline.)
///   DC-1  an alarm rings once, at its time or later, unless it was cancelled before.
///   DC-2  an alarm that rang or was cancelled holds no memory.
///   DC-3  alarms ring on a thread of the clock, or in advance(), in the order of their times. Their functions must be short
///         and must not throw.
class deadline_clock {
 public:
  using time = std::chrono::steady_clock::time_point;
  /// The id of an alarm. A default-constructed id belongs to no alarm.
  using alarm = std::pair<time, std::uint64_t>;

  deadline_clock() = default;
  ~deadline_clock() { stop(); }

  /// Starts the thread of the clock; otherwise the first set() starts it. Throws std::system_error if the system gives no
  /// thread.
  void start();
  /// From now on time passes only by advance(), and the clock has no thread. Pre: no alarm was set.
  void stand_still();
  /// Lets the time pass: the alarms that are due ring on this thread. Pre: stand_still() was called.
  void advance(std::chrono::nanoseconds by);
  /// Sets an alarm: calls `ring` after the time `from_now`.
  alarm set(std::chrono::nanoseconds from_now, std::function<void()> ring);
  /// An id for an alarm that is set later. The receiver of the alarm may need the id before the alarm can ring.
  alarm reserve(std::chrono::nanoseconds from_now);
  /// Sets an alarm whose id was reserved. Pre: the alarm was not set before.
  void set(const alarm& reserved, std::function<void()> ring);
  /// Cancels the alarm. No effect if the alarm has rung, or rings now.
  void call_off(const alarm& which);
  /// The number of alarms that are set.
  std::size_t pending() const;

  /// From now on no alarm rings. Idempotent.
  void stop();

 private:
  time now() const TROUPE_REQUIRES(mutex_) { return stands_at_ ? *stands_at_ : std::chrono::steady_clock::now(); }
  void start_thread() TROUPE_REQUIRES(mutex_);
  void run();
  void ring_first() TROUPE_REQUIRES(mutex_);

  mutable checked_mutex mutex_;
  std::condition_variable sooner_;
  std::map<alarm, std::function<void()>> alarms_ TROUPE_GUARDED_BY(mutex_);
  std::uint64_t last_ TROUPE_GUARDED_BY(mutex_) = 0;
  time wakes_ TROUPE_GUARDED_BY(mutex_) = time::max();  // when the thread wakes next
  std::optional<time> stands_at_ TROUPE_GUARDED_BY(mutex_);
  bool stopped_ TROUPE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace troupe::support
