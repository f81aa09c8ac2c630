// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <c10/core/Device.h>

#include <troupe/devices/staging.hpp>

namespace troupe::devices {

/// Sends what is staged once it is there: a thread that waits for the device so that nobody else has to. It starts with the
/// first parcel.
///   CE-1  what needs no waiting is sent by the caller, at once, unless an earlier parcel still waits.
///   CE-2  parcels are sent in the order in which they were posted, each exactly once, on one thread at a time.
///   CE-3  where the device failed, or the system gives no thread, `send` is told why; it sends nothing then.
///   CE-4  finish() and the destructor end in time, whatever the device does. The `send` of a parcel that is not there by then,
///         or that is posted later, is told that it came too late (troupe::error, stopping).
/// `send` must not throw. Any thread may post.
class courier {
 public:
  using send = std::function<void(std::exception_ptr failure)>;

  courier();
  ~courier() { finish(std::chrono::steady_clock::now()); }
  courier(const courier&) = delete;
  courier& operator=(const courier&) = delete;

  void post(staged what, send how);

  /// True if no parcel waits.
  bool idle() const;

  /// The last thing to ask of it: returns when all parcels posted so far are sent, or at that time.
  void finish(std::chrono::steady_clock::time_point until);

 private:
  struct shared;
  std::shared_ptr<shared> shared_;  // a thread that waits for a device which never answers outlives the courier
  std::thread thread_;
};

/// What a node needs to send tensors of accelerators. It costs nothing until there is one to send.
///   TF-1  parcels of one device keep their order; those of one device do not wait for another device.
class transfers {
 public:
  staging stage;

  /// As the courier's. Pre: some elements are to come. A parcel of several devices is in the order of its first one.
  void post(staged what, courier::send how);
  /// Returns when all parcels posted so far are sent, or at that time. From then on none is.
  void finish(std::chrono::steady_clock::time_point until);

 private:
  std::mutex mutex_;  // guards what follows
  std::map<c10::DeviceIndex, courier> couriers_;
  bool finished_ = false;
};

}  // namespace troupe::devices
