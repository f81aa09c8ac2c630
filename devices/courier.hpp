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

/// Sends staged tensors when their elements have arrived on the host. A thread waits for the device so that no other thread
/// has to. The thread starts with the first parcel that has to wait. A parcel holds staged tensors and the function that sends
/// these tensors.
///   CE-1  a parcel that needs no waiting is sent by the caller at once, unless an earlier parcel still waits.
///   CE-2  parcels are sent in the order in which they were posted, each exactly once, on one thread at a time.
///   CE-3  if the device has failed, or the system gives no thread, `send` gets the error and sends nothing.
///   CE-4  finish() and the destructor end in time, whatever the device does. The `send` of a parcel that is not ready by
///         then, or is posted later, gets the error that it came too late (troupe::error, stopping).
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

  /// To be called last. Returns when all parcels posted so far are sent, or at `until`.
  void finish(std::chrono::steady_clock::time_point until);

 private:
  struct shared;
  std::shared_ptr<shared> shared_;  // shared, because a thread that waits for a device that never answers outlives the courier
  std::thread thread_;
};

/// All that a node needs to send tensors of accelerators. Costs nothing until there is a tensor to send.
///   TF-1  parcels of one device keep their order. A parcel does not wait for parcels of other devices.
class transfers {
 public:
  staging stage;

  /// As courier::post. Precondition: `what` has elements that are still to come. A parcel with tensors of several devices
  /// counts as a parcel of the first of these devices.
  void post(staged what, courier::send how);
  /// Returns when all parcels posted so far are sent, or at `until`. Later parcels are not sent.
  void finish(std::chrono::steady_clock::time_point until);

 private:
  std::mutex mutex_;  // guards the members below
  std::map<c10::DeviceIndex, courier> couriers_;
  bool finished_ = false;
};

}  // namespace troupe::devices
