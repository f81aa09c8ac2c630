// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/courier_test.cpp
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>

#include <c10/core/Device.h>
#include <caf/actor_system.hpp>

#include <troupe/actors/gate/known_peers.hpp>
#include <troupe/actors/services/courier.hpp>
#include <troupe/devices/staging.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::services {

/// Sends tensors whose elements still come from accelerators, through one courier for each device. The first parcel of a device
/// starts the courier of the device. Any thread may use departures.
///   DP-1  parcels of one device keep their order. A parcel does not wait for parcels of other devices.
///   DP-2  if the system gives no thread, `send` gets the error.
///   DP-3  after finish() nothing is sent, and later parcels get an error. finish() ends by its time, whatever the devices do.
///         Only if a call of a driver never returns, finish() ends a second later, and the actor system waits for that courier.
///   DP-4  `finish_contents` runs when all elements have come, on the thread that then runs `send`. If it throws, `send` gets
///         the exception. It does not run after a failure.
///   DP-5  after finish() has returned, no `finish_contents` runs, and no `send` of a parcel without a failure. So both may use
///         objects that are destroyed after the node's departures.
///   DP-6  work for arrivals waits for no parcel. If the system gives no thread, or after finish(), it does not run.
class departures {
 public:
  /// Returns an object that keeps other nodes from sending to the courier as long as the object lives.
  using guard = std::function<gate::own_actors::hold(caf::actor_id courier)>;

  departures(caf::actor_system& system, guard from_strangers);
  ~departures() { finish(std::chrono::steady_clock::now()); }
  departures(const departures&) = delete;
  departures& operator=(const departures&) = delete;

  devices::staging stage;

  /// Pre: `what` has elements that are still to come. A parcel with tensors of several devices counts as a parcel of the first
  /// of these devices.
  void post(devices::staged what, std::function<void()> finish_contents, std::function<void(std::exception_ptr failure)> send);
  /// As post(), with contents in steps: `next_step` runs again when what it returned has come, until it returns nothing that is
  /// still to come.
  void post_in_steps(devices::staged what, std::function<devices::staged()> next_step,
                     std::function<void(std::exception_ptr failure)> send);
  /// Runs `work` for a tensor that arrives for this device, on another thread than that of the parcels (DP-6).
  void run_for_arrival(c10::Device device, std::function<void()> work);
  /// Returns when all parcels posted so far are sent, or at `until`.
  void finish(std::chrono::steady_clock::time_point until);

 private:
  struct line {
    c10::DeviceIndex device;
    bool is_of_arrivals;
    auto operator<=>(const line&) const = default;
  };
  struct hired {
    courier_actor who;
    gate::own_actors::hold hold;
  };

  /// Couriers hold `mutex` (shared) while they send. finish() sets `is_over`; nothing is sent afterwards.
  struct sending {
    std::shared_mutex mutex;
    std::atomic<bool> is_over{false};
  };

  std::exception_ptr hand_over(line to, devices::staged what, std::function<void(std::exception_ptr failure)> send);

  caf::actor_system& system_;
  const guard guard_;
  const std::shared_ptr<sending> sending_ = std::make_shared<sending>();
  checked_mutex mutex_;
  std::map<line, hired> couriers_ TROUPE_GUARDED_BY(mutex_);
  bool finished_ TROUPE_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe::services
