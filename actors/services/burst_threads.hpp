// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/services/burst_threads_test.cpp, tests/actors/waiting_bursts_test.cpp, tests/devices/node_workers_test.cpp
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/actors/contracts/workers.hpp>
#include <troupe/actors/future.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::services {

/// The threads of a node that run bursts. While a burst waits for a future, or for credit of a peer (GW-14), another burst may
/// start. The future may need that other burst: for example if a hook makes a call, and a pass of the called function comes
/// back to this node. Any thread may use burst_threads.
///   BT-1  posted bursts begin in their order, as soon as fewer than `limit` bursts compute. A burst whose wait is over goes on
///         at once: then more than `limit` compute for a while. While a large function waits on a pass worker, its burst counts
///         as waiting.
///   BT-2  a burst that waits keeps no other burst from running, as long as the node has fewer than `most_threads` threads and
///         the system gives another thread. Otherwise bursts wait until another burst has ended.
///   BT-3  after stop() no burst begins and no thread is made.
class burst_threads {
 public:
  using actor = contracts::burst_thread_actor;
  using job = contracts::burst_job;
  static constexpr std::size_t most_threads = 4096;
  static constexpr std::size_t most_spare = 3;  // idle threads that stay, beside `limit`

  /// To be called once, before post(). `spawn` makes a thread, and throws std::system_error if the system gives none. start()
  /// throws this error too, for the first `limit` threads.
  void start(std::size_t limit, std::function<actor()> spawn);

  void post(job what);
  /// The order to a thread that has run a burst: the next burst that it has to run. If there is no next burst and `ends` is
  /// true, the thread has to end.
  struct order {
    std::optional<job> next;
    bool ends = false;
  };
  order ended(const actor& thread);
  /// To be called when a burst begins to wait for a future; resumed() when the burst goes on.
  void blocked();
  void resumed();
  /// For the node's end: returns the threads that have not ended. The caller ends them.
  std::vector<actor> stop();

  /// While a waiting_observer lives, its thread calls blocked() and resumed() when it waits. Pass workers have a
  /// waiting_observer too.
  class waiting_observer final : public blocking_observer {
   public:
    explicit waiting_observer(burst_threads& of) : of_(of), outer_(std::exchange(current(), this)) {}
    ~waiting_observer() override { current() = outer_; }
    void blocked() override { of_.blocked(); }
    void resumed() override { of_.resumed(); }
    bool hears_workers() const noexcept override { return true; }

   private:
    burst_threads& of_;
    blocking_observer* outer_;
  };

 private:
  struct begin {
    actor thread;
    job what;
  };
  std::vector<begin> due() TROUPE_REQUIRES(mutex_);

  checked_mutex mutex_;
  std::size_t limit_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::function<actor()> spawn_ TROUPE_GUARDED_BY(mutex_);
  std::ptrdiff_t computing_ TROUPE_GUARDED_BY(mutex_) = 0;  // bursts that run and do not wait
  std::deque<job> waiting_ TROUPE_GUARDED_BY(mutex_);
  std::vector<actor> all_ TROUPE_GUARDED_BY(mutex_);
  std::vector<actor> idle_ TROUPE_GUARDED_BY(mutex_);  // the last element was used last
  bool stopped_ TROUPE_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe::services
