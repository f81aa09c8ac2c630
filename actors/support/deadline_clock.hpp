// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace troupe::support {

/// Rings when deadlines pass. Nearly all of them are called off long before: that, and setting one, takes no other thread's
/// time and leaves nothing behind. (CAF's clock keeps a timer until its time has come: memory of rate by deadline.)
///   DC-1  an alarm rings once, never before its time, unless it was called off before.
///   DC-2  an alarm that rang or was called off keeps nothing.
///   DC-3  alarms ring on a thread of the clock's own; what they do must be short and not throw.
class deadline_clock {
 public:
  using time = std::chrono::steady_clock::time_point;
  /// Names an alarm; a default one names none.
  using alarm = std::pair<time, std::uint64_t>;

  deadline_clock() = default;
  ~deadline_clock() { stop(); }
  deadline_clock(const deadline_clock&) = delete;
  deadline_clock& operator=(const deadline_clock&) = delete;

  /// Its thread, which otherwise starts with the first alarm. Throws std::system_error where the system gives none.
  void start();
  alarm set(std::chrono::nanoseconds from_now, std::function<void()> ring);
  /// No effect if it rang already, or rings right now.
  void call_off(const alarm& which);
  std::size_t pending() const;

  /// Nothing rings any more. Idempotent.
  void stop();

 private:
  void start_thread();
  void run();

  mutable std::mutex mutex_;
  std::condition_variable sooner_;
  std::map<alarm, std::function<void()>> alarms_;
  std::uint64_t last_ = 0;
  time wakes_ = time::max();  // when the thread looks next
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace troupe::support
