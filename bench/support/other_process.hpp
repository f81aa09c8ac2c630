// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

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

/// Runs `measure` in a process of its own and returns what it returns: actor systems of different measurements then do not disturb each other.
/// To be called while this process has one thread. Throws std::runtime_error if the process fails; the process has printed why.
std::vector<double> in_own_process(const std::function<std::vector<double>()>& measure);

/// What a process of this machine uses. Throws std::runtime_error if there is no such process.
struct process_figures {
  double cpu_seconds = 0;  // user and system time since the process started
  std::size_t threads = 0;
  std::size_t descriptors = 0;
  std::int64_t resident_kib = 0;
  std::int64_t peak_kib = 0;  // most resident memory since the process started, or since forget_peak()

  static process_figures of(pid_t process);
};

/// The memory of this process that is in RAM, in bytes, after unused memory of the allocator was given back.
double resident_bytes();

/// The peak of this process's resident memory in bytes, since its start or since forget_peak().
double peak_bytes();

/// The peak of this process's resident memory counts anew from now on.
void forget_peak();

}  // namespace troupe::bench
