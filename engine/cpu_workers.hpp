// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include <c10/core/Device.h>

#include <troupe/engine/cost_book.hpp>
#include <troupe/engine/lane.hpp>

namespace troupe::engine {

/// Worker threads that run functions of a pass in parallel with the thread of the pass. They serve one lane (lane.hpp) for the
/// CPU and, if the object has them, one lane for each accelerator. The engine has no threads of its own: a caller that wants
/// functions to run in parallel provides the workers. Several passes may share one object.
///   EW-1  posted work runs exactly once, soon, on a thread that runs no pass. The poster makes sure that the work does not
///         throw.
///   EW-2  a pass never waits for posted work to begin, so a pass does not need a free worker.
///   EW-3  the workers belong to the process that created them. A forked child does not have their threads: a pass that uses
///         these workers throws in the child.
class cpu_workers {
 public:
  virtual ~cpu_workers() = default;

  /// Runs `work` on a worker of the CPU.
  virtual void post(std::function<void()> work) = 0;

  /// Returns the lane of an accelerator; null if the thread of a pass runs the functions of this device.
  virtual lane* lane_of(c10::Device) noexcept { return nullptr; }
  lane& cpu_lane() noexcept { return *cpu_lane_; }

  /// Throws c10::Error if another process created the workers.
  void check_process() const;

  std::size_t count() const noexcept { return count_; }

  /// A function that costs at least this many nanoseconds is worth handing to a worker.
  std::int64_t grain() const noexcept { return grain_; }

  /// Returns the measured costs of functions that ran in passes with these workers.
  cost_book& costs() noexcept { return costs_; }

  /// True if the last pass had several large functions. The next pass then looks for large functions from the start.
  std::atomic<bool>& busy() noexcept { return busy_; }

 protected:
  explicit cpu_workers(std::size_t count, std::int64_t grain = 0);

  /// Sets the grain to twice the time that a worker takes for empty work, but at least 10 us and at most 30 us. Call it after
  /// the workers have started.
  void measure_grain();

 private:
  /// Makes a worker serve the lane. The default posts `what` as work. Workers that are actors override this function and get a
  /// message.
  virtual void call_worker(serve_lane what) { post(std::move(what)); }

  std::size_t count_;
  std::int64_t grain_;
  int process_;
  std::shared_ptr<lane> cpu_lane_;
  cost_book costs_;
  std::atomic<bool> busy_{false};
};

}  // namespace troupe::engine
