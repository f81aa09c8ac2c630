// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include <troupe/devices/staging.hpp>

namespace troupe::devices {

/// Sends what is staged once it is there: a thread that waits for the device so that nobody else has to. It starts with the
/// first parcel.
///   CR-1  what needs no waiting is sent by the caller, at once, unless an earlier parcel still waits.
///   CR-2  parcels are sent in the order in which they were posted, each exactly once, on one thread at a time.
///   CR-3  where the device failed, `send` is told why; it sends nothing then.
///   CR-4  finish() and the destructor return when all parcels are sent.
/// `send` must not throw. Any thread may post.
class courier {
 public:
  using send = std::function<void(std::exception_ptr failure)>;

  courier() = default;
  ~courier();
  courier(const courier&) = delete;
  courier& operator=(const courier&) = delete;

  void post(staged what, send how);

  /// True if no parcel waits.
  bool idle() const;

  /// Returns when all parcels posted so far are sent.
  void finish();

 private:
  struct parcel {
    staged what;
    send how;
  };

  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<parcel> parcels_;  // the front one is waited for
  bool stopping_ = false;
  std::thread thread_;
};

/// What a node needs to send tensors of accelerators. It costs nothing until there is one to send.
struct transfers {
  staging stage;
  courier messenger;
};

}  // namespace troupe::devices
