// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/deadline_clock.hpp>

#include <pthread.h>
#include <algorithm>

#include <troupe/messages/expect.hpp>

namespace troupe::support {

constexpr std::chrono::hours longest{24 * 365 * 30};  // 30 years: sums of times do not overflow

void deadline_clock::start() {
  const checked_lock lock(mutex_);
  if (!stopped_) start_thread();
}

void deadline_clock::start_thread() {
  if (thread_.joinable() || stands_at_) return;
  thread_ = std::thread([this] { run(); });
  ::pthread_setname_np(thread_.native_handle(), "troupe.clock");
}

deadline_clock::alarm deadline_clock::set(std::chrono::nanoseconds from_now, std::function<void()> ring) {
  const auto made = reserve(from_now);
  set(made, std::move(ring));
  return made;
}

deadline_clock::alarm deadline_clock::reserve(std::chrono::nanoseconds from_now) {
  const checked_lock lock(mutex_);
  return {now() + std::clamp<std::chrono::nanoseconds>(from_now, {}, longest), ++last_};
}

void deadline_clock::set(const alarm& reserved, std::function<void()> ring) {
  checked_unique_lock lock(mutex_);
  if (stopped_) return;
  start_thread();
  TROUPE_EXPECT(alarms_.emplace(reserved, std::move(ring)).second);
  const bool wake = reserved.first < wakes_;
  lock.unlock();
  if (wake) sooner_.notify_one();
}

void deadline_clock::call_off(const alarm& which) {
  std::function<void()> called_off;  // destroyed after the lock is released
  checked_lock lock(mutex_);
  if (const auto found = alarms_.find(which); found != alarms_.end()) {
    called_off = std::move(found->second);
    alarms_.erase(found);
  }
}

std::size_t deadline_clock::pending() const {
  checked_lock lock(mutex_);
  return alarms_.size();
}

void deadline_clock::stop() {
  {
    checked_lock lock(mutex_);
    stopped_ = true;
  }
  sooner_.notify_one();
  if (thread_.joinable()) thread_.join();
  decltype(alarms_) left;     // destroyed after the lock is released
  checked_lock lock(mutex_);  // an actor that is destroyed late calls off its alarm
  left.swap(alarms_);
}

void deadline_clock::stand_still() {
  const checked_lock lock(mutex_);
  TROUPE_EXPECT(!thread_.joinable() && alarms_.empty());
  stands_at_ = std::chrono::steady_clock::now();
}

void deadline_clock::advance(std::chrono::nanoseconds by) {
  checked_unique_lock lock(mutex_);
  TROUPE_EXPECT(stands_at_);
  *stands_at_ += by;
  while (!stopped_ && !alarms_.empty() && alarms_.begin()->first.first <= *stands_at_) ring_first();
}

/// Rings the first alarm, without the lock, because an alarm may set other alarms.
void deadline_clock::ring_first() {
  {
    const auto ring = std::move(alarms_.begin()->second);
    alarms_.erase(alarms_.begin());
    mutex_.unlock();
    ring();
  }
  mutex_.lock();
}

// Cancelling an alarm does not wake the thread. The thread still wakes at the time of the cancelled alarm, and then waits for
// the next alarm.
void deadline_clock::run() {
  checked_unique_lock lock(mutex_);
  while (!stopped_) {
    const auto now = std::chrono::steady_clock::now();
    if (!alarms_.empty() && alarms_.begin()->first.first <= now) {
      ring_first();
      continue;
    }
    wakes_ = alarms_.empty() ? now + longest : alarms_.begin()->first.first;
    sooner_.wait_until(lock, wakes_);
  }
}

}  // namespace troupe::support
