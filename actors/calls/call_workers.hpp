// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/threads_of_calls_test.cpp
#pragma once

#include <mutex>
#include <vector>

#include <troupe/actors/calls/call_worker.hpp>

namespace troupe::calls {

/// The workers of a node that run calls. Any thread may use it.
///   WK-1  after stop() no worker is made.
class call_workers {
 public:
  explicit call_workers(call_surroundings here) : here_(here) {}

  /// Makes a worker. Throws troupe::error: function_failed if the system gives no thread, stopping after stop().
  contracts::call_worker_actor spawn();
  /// Ends the worker.
  void let_go(const contracts::call_worker_actor& worker);
  /// For the node's end: returns all workers. The caller ends them.
  std::vector<contracts::call_worker_actor> stop();

  const call_surroundings& surroundings() const noexcept { return here_; }

 private:
  const call_surroundings here_;
  std::mutex mutex_;  // guards what follows
  std::vector<contracts::call_worker_actor> all_;
  bool stopped_ = false;
};

}  // namespace troupe::calls
