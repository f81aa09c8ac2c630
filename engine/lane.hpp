// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include <troupe/engine/lane_queue.hpp>

namespace troupe::engine {

/// A ready queue that worker threads serve: the threads of a team for the CPU, or the one thread of an accelerator. The passes of
/// a process share a lane. The lane has no threads of its own: `post` runs a function on one of the workers.
///   LV-1  a task that waits begins on a worker, in the order of lane_queue, unless another thread claims the task first.
///   LV-2  a worker that waits within a task (a function that runs a nested pass) runs the tasks that wait meanwhile, to any depth.
///         So a nested pass never waits for a worker that waits for this pass.
///   LV-3  serve() returns when no task is left, and no task has come for `patience`.
///   LV-4  after promises() the calling thread runs the task next, before tasks that came meanwhile, unless another thread claims it.
/// No deadlock can come from LV-2: a thread waits only for tasks that began after the task within which the thread waits.
class lane : public std::enable_shared_from_this<lane> {
 public:
  using post_function = std::function<void(std::function<void()>)>;

  enum class kind : std::uint8_t { cpu, accelerator };

  /// `workers`: how many threads serve the lane at once, at most. A shared_ptr has to own the lane; what the lane posts shares it.
  lane(kind what, std::size_t workers, post_function post) : what_(what), workers_(workers), post_(std::move(post)) {}

  kind what() const noexcept { return what_; }

  /// Any thread may add a task.
  void add(lane_task_ptr next);

  /// Runs a task that waits, on this thread; false if none waits.
  bool run_one();

  /// For a worker within a task that has added `next`: whether this worker runs `next` as soon as the task is over. False if the thread does
  /// not serve this lane, waits within a task (LV-2), or has promised a task, and if other tasks wait: one of them may come first.
  bool promises(const lane_task_ptr& next);

  /// The lane that the calling thread serves now; null if the thread serves none.
  static lane* of_this_thread() noexcept;
  /// For a thread that continues the work of a worker that waits.
  static void serve_on_this_thread(lane* which) noexcept;

  /// For a worker within a task: runs tasks, and sleeps while none waits, until `done()` is true. `done` must not block. Who makes
  /// `done` true has to call ring() afterwards.
  void serve_until(const std::function<bool()>& done);
  void ring();

 private:
  struct wait_here;

  void serve();
  bool more_soon() const;

  const kind what_;
  const std::size_t workers_;
  const post_function post_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable rung_;
  lane_queue queue_;
  std::size_t serving_ = 0;              // workers that serve the lane, or have been asked to
  std::atomic<std::size_t> waiting_{0};  // the size of queue_
};

}  // namespace troupe::engine
