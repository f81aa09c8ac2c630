// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/services/garbage_test.cpp, tests/actors/short_work_test.cpp
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include <troupe/actors/contracts/workers.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/node_network.hpp>
#include <troupe/actors/services/running_work.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/actors/support/work_times.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::services {

/// Objects that a node does not need any more and that may take long to free. Any thread may use garbage.
///   GB-1  on a node with a network, until the node stops, a call of add() frees nothing: another thread frees the objects, or
///         the calling thread does so after the call.
class garbage {
 public:
  /// `tidy`: the work that tidy_soon() schedules.
  garbage(std::function<void()> tidy, const node_network& network, const node_actors& actors, support::work_times& times,
          support::deadline_clock& deadlines, running_work& running)
      : tidy_(std::move(tidy)), network_(network), actors_(actors), times_(times), deadlines_(deadlines), running_(running) {}

  /// Frees objects: on the network thread within a millisecond, or on the thread of cpu_continuation if freeing took longer
  /// than settings::short_work lately, or if the network is CAF's own.
  void add(std::shared_ptr<void> what);
  /// Frees the objects that were added. To be called by `tidy`.
  void free_all();
  /// Frees objects on this thread.
  void free(contracts::discarded what);
  /// Makes the network thread call `tidy` when it has nothing else to do, or within a millisecond. With CAF's own network the
  /// thread of the node's deadlines calls `tidy` within a millisecond. Without a network tidy_soon() calls `tidy` itself.
  void tidy_soon();
  /// The work that tidy_soon() schedules.
  const std::function<void()>& tidy() const noexcept { return tidy_; }
  /// For the node's end: returns the objects that are not freed yet. From now on add() frees objects at once.
  contracts::discarded stop();

 private:
  const std::function<void()> tidy_;
  const node_network& network_;
  const node_actors& actors_;
  support::work_times& times_;
  support::deadline_clock& deadlines_;
  running_work& running_;
  checked_mutex mutex_;
  contracts::discarded kept_ TROUPE_GUARDED_BY(mutex_);
  bool frees_at_once_ TROUPE_GUARDED_BY(mutex_) = false;
  std::atomic<bool> will_tidy_{false};
};

}  // namespace troupe::services
