// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <troupe/engine/cpu_workers.hpp>

namespace caf {
class actor_system;
}

namespace troupe::passes {

class lane_threads;

}  // namespace troupe::passes

namespace troupe {

class node;

/// Actors that run large functions of passes, in parallel with the calling thread: CPU workers, and one device worker for each
/// accelerator of the process. `worker_team team(here, 3); backward({loss}, {}, {.workers = &team});`. The team has to outlive
/// the passes that use it, and the node has to outlive the team. Any number of threads may use a team at once.
///   WT-1  when the destructor has returned, no worker is left and no posted work runs any more. Only work that takes longer
///         than the stop limit (stop_limit_of_environment()) still runs: a warning reports this work, and the actor system does
///         not wait for it.
///   WT-2  each accelerator that is present when the team starts has one worker, which runs nothing but functions of this
///         device.
class worker_team final : public engine::cpu_workers {
 public:
  /// Starts `count` threads for the CPU, and one for each accelerator. Throws troupe::error: misuse if `count` is 0 or the
  /// environment's stop limit is no number, function_failed if the system gives fewer threads. Takes a few hundred
  /// microseconds.
  worker_team(node& here, std::size_t count);
  worker_team(caf::actor_system& system, std::size_t count);
  ~worker_team() override;

  void post(std::function<void()> work) override;
  engine::lane* lane_of(c10::Device device) noexcept override;

 private:
  void call_worker(engine::serve_lane what) override;

  std::unique_ptr<passes::lane_threads> threads_;
};

}  // namespace troupe
