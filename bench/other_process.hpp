// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace troupe::bench {

/// A child process that runs a function on one OpenMP thread until that is done or told to stop. Make all of them before the first
/// thread exists, watch them after.
class other_process {
 public:
  /// `run(stop, tell)`: returns once `stop` can be read; may tell a number.
  explicit other_process(const std::function<void(int stop, const std::function<void(std::uint16_t)>& tell)>& run);
  /// From now on, should the child end before it is asked to: prints that, calls `lost` on a thread of its own and ends this
  /// process with status 1, which would else wait for answers that do not come.
  void watch(std::string name, std::function<void()> lost);
  /// Asks the child to end.
  void stop();
  /// Stops it and waits for the child's end.
  ~other_process();
  other_process(const other_process&) = delete;
  other_process& operator=(const other_process&) = delete;

  /// What the child told; waits for it. Throws std::runtime_error when it ends without.
  std::uint16_t told() const;

 private:
  pid_t child_ = 0;
  int stop_ = -1;
  int told_ = -1;
  std::atomic<bool> may_end_ = false;
  std::thread watcher_;
};

}  // namespace troupe::bench
