// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/lane_test.cpp
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace troupe::engine {

/// Work for a lane. Several threads may hold a task; the thread that claims the task runs it.
struct lane_task {
  lane_task(std::uint32_t depth, std::uint64_t sequence) noexcept : depth(depth), sequence(sequence) {}
  virtual ~lane_task() = default;

  /// Called once, by the thread that has claimed the task.
  virtual void run() noexcept = 0;

  /// True for the first caller.
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
///   LQ-2  a task that was claimed elsewhere is left out.
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

}  // namespace troupe::engine
