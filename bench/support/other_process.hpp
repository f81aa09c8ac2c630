// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::bench {

/// Returns once `stop`, which the function of an other_process gets, can be read.
void wait_for(int stop);

/// A child process that runs a function, with one OpenMP thread, until the function returns or is told to stop. Create all
/// children before the first thread exists. Call watch() after that.
class other_process {
 public:
  /// The child calls `run(stop, tell)`, which has to return once `stop` can be read. `run` may call `tell` with a number.
  explicit other_process(const std::function<void(int stop, const std::function<void(std::uint16_t)>& tell)>& run);
  /// Watches the child from now on. If the child ends before stop() is called, a thread prints that, calls `lost`, and ends
  /// this process with status 1. Without watch() this process would wait for answers of a dead child for ever.
  void watch(std::string name, std::function<void()> lost);
  /// Asks the child to end.
  void stop();
  /// Stops the child and waits for its end.
  ~other_process();
  other_process(const other_process&) = delete;
  other_process& operator=(const other_process&) = delete;

  /// The number that the child told; waits for it. Throws std::runtime_error if the child ends without telling one.
  std::uint16_t told() const;

 private:
  pid_t child_ = 0;
  support::owned_descriptor stop_;
  support::owned_descriptor told_;
  std::atomic<bool> may_end_ = false;
  std::thread watcher_;
};

}  // namespace troupe::bench
