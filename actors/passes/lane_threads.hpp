// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/worker_team_test.cpp, tests/devices/device_workers_test.cpp
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <c10/core/Device.h>
#include <caf/fwd.hpp>

#include <troupe/actors/gate/known_peers.hpp>
#include <troupe/actors/passes/lane_worker.hpp>
#include <troupe/engine/lane.hpp>

namespace troupe::passes {

/// The threads behind lanes: CPU workers, and one device worker for each accelerator of the process. Any thread may use
/// lane_threads. The actor system does not wait for a thread whose work runs beyond the stop limit, because that thread uses
/// nothing of the system.
///   LH-1  when the destructor has returned, or the constructor has thrown, no worker is left and no posted work runs or
///         begins. Only work that still runs at the stop limit goes on: a warning reports it, and its thread ends with the
///         work.
///   LH-2  each accelerator that is present at the start has one worker, which runs nothing but functions of this device.
///   LH-3  posted work begins at once while a CPU worker is idle, otherwise as soon as a worker has finished its work. Work
///         begins in the order in which it was posted.
class lane_threads {
 public:
  /// `count`: the CPU workers, at least one. `within`: is called on the worker with the work of each message, and has to run
  /// this work. `stop_limit`: see LH-1; none: the destructor waits for as long as work runs. Throws troupe::error
  /// (function_failed) if the system gives fewer threads.
  lane_threads(caf::actor_system& system, std::size_t count, std::optional<std::chrono::milliseconds> stop_limit,
               const work_runner& within = run_work);
  ~lane_threads();
  lane_threads(const lane_threads&) = delete;
  lane_threads& operator=(const lane_threads&) = delete;

  /// Runs the work on a CPU worker.
  void post(std::function<void()> work);
  void call_worker(engine::serve_lane what);
  /// Null if the device is no accelerator that was present at the start.
  engine::lane* lane_of(c10::Device device) noexcept;

 private:
  struct queue;

  void add(c10::Device device, work_runner runner);
  template <class Message>
  void send(Message what);
  std::size_t end() noexcept;

  caf::actor_system& system_;
  const std::optional<std::chrono::milliseconds> stop_limit_;
  const std::optional<c10::DeviceType> type_;         // of the accelerators
  std::vector<lane_worker_actor> workers_;            // those of the CPU come first
  std::vector<support::thread_stay_ptr> stays_;       // by worker
  std::vector<gate::own_actors::hold> guards_;        // keep other nodes from sending to the workers
  std::vector<std::shared_ptr<engine::lane>> lanes_;  // by accelerator
  const std::shared_ptr<queue> queue_;                // shared with the CPU workers
};

}  // namespace troupe::passes
