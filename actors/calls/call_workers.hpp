// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/threads_of_calls_test.cpp
#pragma once

#include <atomic>
#include <chrono>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/actors/calls/call_worker.hpp>
#include <troupe/actors/gate/known_peers.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::calls {

/// The workers of a node that run calls. Any thread may use call_workers.
///   WK-1  after stop() no worker is made.
///   WK-2  a worker that runs no call for twice idle_time() ends, and its thread with it.
class call_workers {
 public:
  explicit call_workers(call_surroundings here) : here_(std::move(here)) {}

  /// Makes a worker. Throws troupe::error: function_failed if the system gives no thread, stopping after stop().
  contracts::call_worker_actor spawn();
  /// Returns the worker with this id. Throws troupe::error (stopping) after stop(). Pre: let_go() was not called for the
  /// worker.
  contracts::call_worker_actor find(caf::actor_id worker);
  /// Ends the worker.
  void let_go(caf::actor_id worker);
  /// For the node's end: returns all workers. The caller ends them.
  std::vector<contracts::call_worker_actor> stop();

  /// The surroundings of all calls. The reference is valid as long as this object lives.
  const call_surroundings& surroundings() const noexcept { return here_; }

  /// The time between two ticks of `gateway`. At each tick, the workers end that ran no call since the tick before.
  std::chrono::nanoseconds idle_time() const noexcept { return idle_time_.load(); }
  void set_idle_time(std::chrono::nanoseconds time) noexcept { idle_time_ = time; }

 private:
  void throw_if_stopped() const TROUPE_REQUIRES(mutex_);

  const call_surroundings here_;
  std::atomic<std::chrono::nanoseconds> idle_time_{std::chrono::seconds(10)};
  checked_mutex mutex_;
  struct guarded_worker {
    contracts::call_worker_actor worker;
    gate::own_actors::hold guard;  // keeps other nodes from sending to the worker
  };
  std::unordered_map<caf::actor_id, guarded_worker> all_ TROUPE_GUARDED_BY(mutex_);
  bool stopped_ TROUPE_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe::calls
