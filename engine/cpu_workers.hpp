// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include <troupe/engine/cost_book.hpp>

namespace troupe::engine {

/// Threads beside the one that runs a pass. The engine has none of its own: who wants functions of one pass to run at once
/// provides them. Several passes may share one.
///   EW-1  what is posted runs once, soon, on a thread that runs no pass. It does not throw.
///   EW-2  a pass never waits for work to begin that it has posted, so that no worker need be free.
///   EW-3  they belong to the process that made them. A pass with them in a forked child, which lacks the threads, throws.
class cpu_workers {
 public:
  virtual ~cpu_workers() = default;
  cpu_workers(const cpu_workers&) = delete;
  cpu_workers& operator=(const cpu_workers&) = delete;

  virtual void post(std::function<void()> work) = 0;

  /// Throws where this is not the process that made them.
  void check_process() const;

  std::size_t count() const noexcept { return count_; }

  /// Functions that cost at least so many nanoseconds are worth handing over.
  std::int64_t grain() const noexcept { return grain_; }

  /// What is known of functions that ran in passes with these workers.
  cost_book& costs() noexcept { return costs_; }

  /// Whether the last pass had large functions: then the next one looks for them from the start.
  std::atomic<bool>& busy() noexcept { return busy_; }

 protected:
  explicit cpu_workers(std::size_t count, std::int64_t grain = 0);

  /// Sets the grain to twice what it takes to have a worker do nothing. To be called once the workers are there.
  void measure_grain();

 private:
  std::size_t count_;
  std::int64_t grain_;
  int process_;
  cost_book costs_;
  std::atomic<bool> busy_{false};
};

}  // namespace troupe::engine
