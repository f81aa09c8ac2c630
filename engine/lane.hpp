// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <troupe/messages/mutex.hpp>

namespace troupe::engine {

/// Work for a lane. Several threads may hold a task; the thread that claims the task runs it.
struct lane_task {
  lane_task(std::uint32_t depth, std::uint64_t sequence) noexcept : depth(depth), sequence(sequence) {}
  virtual ~lane_task() = default;

  /// Called once, by the thread that has claimed the task.
  virtual void run() noexcept = 0;

  /// Returns true to the first caller alone.
  bool claim() noexcept { return !claimed_.exchange(true, std::memory_order_acq_rel); }
  bool is_claimed() const noexcept { return claimed_.load(std::memory_order_acquire); }

  const std::uint32_t depth;     // the number of passes around the pass of the task
  const std::uint64_t sequence;  // the sequence number of the task's function

 private:
  std::atomic<bool> claimed_{false};
};

using lane_task_ptr = std::shared_ptr<lane_task>;

/// The tasks that wait in a lane.
///   LQ-1  the next task is the one of the greatest depth and, among tasks of that depth, of the highest sequence number, as in
///         libtorch's queue. So a nested pass, for which the thread of a function waits, comes before the passes around it.
///   LQ-2  claim_next() skips tasks that another thread has claimed.
class lane_queue {
 public:
  void push(lane_task_ptr next) {
    heap_.push_back(std::move(next));
    std::push_heap(heap_.begin(), heap_.end(), runs_later);
  }

  /// Claims the next task; null if none is left.
  lane_task_ptr claim_next() {
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), runs_later);
      auto next = std::move(heap_.back());
      heap_.pop_back();
      if (next->claim()) return next;
    }
    return nullptr;
  }

  std::size_t size() const noexcept { return heap_.size(); }

 private:
  static bool runs_later(const lane_task_ptr& a, const lane_task_ptr& b) noexcept {
    return a->depth != b->depth ? a->depth < b->depth : a->sequence < b->sequence;
  }

  std::vector<lane_task_ptr> heap_;
};

class lane;

/// The work that a lane posts. The worker that calls this object serves the lane.
struct serve_lane {
  std::shared_ptr<lane> which;
  void operator()() const;
};

/// A ready queue that worker threads serve: the threads of a team for the CPU, or the one thread of an accelerator. The passes
/// of a process share a lane. The lane has no threads of its own: it calls `post` to make a worker call serve().
///   LV-1  each waiting task begins on a worker, in the order of lane_queue, unless another thread claims the task first.
///   LV-2  a worker that waits within a task, such as a function that runs a nested pass, runs other tasks of the lane
///         meanwhile. These tasks may wait in the same way, to any depth. So a nested pass never waits for a worker that waits
///         for the same nested pass.
///   LV-3  serve() returns when no task is left, and no task has come for a moment (`patience` in lane.cpp).
///   LV-4  if promises() returned true, the calling thread runs the task next, before tasks that came meanwhile, unless another
///         thread claims it.
/// No deadlock can come from LV-2: a thread waits only for tasks that began after the task within which the thread waits.
class lane : public std::enable_shared_from_this<lane> {
 public:
  using post_function = std::function<void(serve_lane)>;

  enum class kind : std::uint8_t { cpu, accelerator };

  /// `workers`: how many threads serve the lane at once, at most. A shared_ptr has to own the lane, because each posted
  /// serve_lane shares it.
  lane(kind what, std::size_t workers, post_function post) : what_(what), workers_(workers), post_(std::move(post)) {}

  kind what() const noexcept { return what_; }

  /// Any thread may add a task.
  void add(lane_task_ptr next);
  /// Runs tasks on the calling worker (LV-3).
  void serve();

  /// Runs a task that waits, on this thread; false if none waits.
  bool run_one();

  /// Called by a worker that has added `next` within a task. Returns true if this worker will run `next` as soon as its task is
  /// over. Returns false if the thread does not serve this lane, waits within a task (LV-2), or has promised another task.
  /// Returns false too if other tasks wait, because one of them may come first.
  bool promises(const lane_task_ptr& next);

  /// Returns the lane that the calling thread serves now; null if the thread serves none.
  static lane* of_this_thread() noexcept;
  /// Sets of_this_thread(), for a thread that continues the work of a worker that waits.
  static void serve_on_this_thread(lane* which) noexcept;

  /// Called by a worker within a task. Runs tasks, and sleeps while none waits, until `done()` is true. `done` must not block.
  /// The thread that makes `done` true has to call ring() afterwards.
  void serve_until(const std::function<bool()>& done);
  void ring();

 private:
  struct wait_here;

  bool more_soon() const;

  const kind what_;
  const std::size_t workers_;
  const post_function post_;
  checked_mutex mutex_;
  std::condition_variable rung_;
  lane_queue queue_ TROUPE_GUARDED_BY(mutex_);
  std::size_t serving_ TROUPE_GUARDED_BY(mutex_) = 0;  // workers that serve the lane, or have been asked to
  std::atomic<std::size_t> waiting_{0};                // the size of queue_
};

inline void serve_lane::operator()() const { which->serve(); }

}  // namespace troupe::engine
