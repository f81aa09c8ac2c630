// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <c10/core/Stream.h>

#include "support/simulated_accelerator.hpp"

/// The streams of the simulated accelerator. One lock guards all streams, because tests need a view of all streams at once and
/// no speed.
namespace troupe::test::simulated {

/// Each record() asks for a new version. A version is recorded when the stream has done the work that was queued before: at once
/// if there is none.
struct event {
  std::uint64_t asked = 0;
  std::uint64_t recorded = 0;
  c10::DeviceIndex device = 0;  // of the stream that records it
};
using event_ptr = std::shared_ptr<event>;

/// The stream whose c10::Stream::native_handle() this is.
c10::Stream stream_of_handle(void* handle);

class stream_set {
 public:
  /// The only set of the program. It is never destroyed, because its threads may wait in it until the process ends.
  static stream_set& all();

  c10::Stream add(c10::DeviceIndex device);

  /// Queues work. `work` runs without the lock.
  void push(const c10::Stream& to, std::function<void()> work);
  /// Queues a kernel or a copy. Does nothing if the device is broken.
  void compute(const c10::Stream& to, std::function<void()> kernel);
  /// Queues a wait until `passable` (called with the lock held) is true. `changes_elsewhere`: another process changes it too, so
  /// it is asked again and again.
  void hold(const c10::Stream& to, std::function<bool()> passable, bool changes_elsewhere = false);
  /// Runs `what` with the lock held. Then the holds check their conditions again.
  void change(const std::function<void()>& what);

  void record(const event_ptr& which, const c10::Stream& on);
  void wait(const event_ptr& which, const c10::Stream& on);
  bool done(const event_ptr& which);
  void synchronize(const event_ptr& which);

  bool idle(const c10::Stream& stream);
  void synchronize(const c10::Stream& stream);
  void synchronize();
  void settle();
  std::size_t waits();

  /// A broken device computes nothing that is queued later.
  void set_broken(c10::DeviceIndex device, bool is) { broken_.at(static_cast<std::size_t>(device)) = is; }
  bool broken(c10::DeviceIndex device) const { return broken_.at(static_cast<std::size_t>(device)); }
  bool broken(const event_ptr& which);

 private:
  struct task {
    std::function<void()> work;
    std::function<bool()> passable;
    bool changes_elsewhere = false;
  };
  struct worker {
    std::deque<task> queue;  // the task at the front is running
    std::condition_variable filled;
    std::thread thread;
  };

  stream_set();
  void run(worker& own);
  worker& find(const c10::Stream& stream);
  void put(const c10::Stream& to, task what);

  std::mutex mutex_;
  std::condition_variable changed_;  // a task has ended, or what a task or a thread waits for may have happened
  std::vector<std::unique_ptr<worker>> workers_[most_devices];
  std::size_t waits_ = 0;
  std::array<std::atomic<bool>, most_devices> broken_{};
};

}  // namespace troupe::test::simulated
