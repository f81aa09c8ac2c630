// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <optional>
#include <vector>

namespace troupe::calls {

/// Decides which worker runs which call. A call starts only while fewer than `limit` calls compute. A call that waits for
/// another call frees its worker slot meanwhile, so nested calls never wait for each other's workers. When the waiting call goes
/// on, more than `limit` calls compute for a while.
///   PW-1  while a call waits in the queue, at least `limit` calls are computing.
///   PW-2  calls start in the order of add().
///   PW-3  surplus() hands out idle workers until `most_idle` are left, or `limit` if that is more.
///   PW-4  a call that take_if() has returned never starts; the others keep their order.
template <class Worker, class Call>
class call_pool {
 public:
  explicit call_pool(std::size_t limit, std::size_t most_idle = 0)
      : limit_(limit == 0 ? 1 : limit), most_idle_(std::max(limit_, most_idle)) {}

  /// A call and an idle worker for it. If `worker` is empty the caller has to make a worker.
  struct start {
    std::optional<Worker> worker;
    Call call;
  };

  void add(Call call) { queue_.push_back(std::move(call)); }
  void idle(Worker worker) {
    --computing_;
    idle_.push_back(std::move(worker));
  }
  /// To be called if a call from next() does not start because no worker could be made for the call.
  void not_started() { --computing_; }
  /// To be called when a running call begins to wait for another call; resumed() when the call goes on.
  void blocked() { --computing_; }
  void resumed() { ++computing_; }

  /// The next call that may start, if any.
  std::optional<start> next() {
    if (queue_.empty() || computing_ >= static_cast<std::ptrdiff_t>(limit_)) return std::nullopt;
    ++computing_;
    start result{std::nullopt, std::move(queue_.front())};
    queue_.pop_front();
    if (!idle_.empty()) {
      result.worker = std::move(idle_.back());
      idle_.pop_back();
    }
    return result;
  }

  /// Takes all calls for which `which` returns true out of the queue.
  template <class Predicate>
  std::vector<Call> take_if(const Predicate& which) {
    const auto kept = std::stable_partition(queue_.begin(), queue_.end(), [&](const Call& each) { return !which(each); });
    std::vector<Call> result(std::make_move_iterator(kept), std::make_move_iterator(queue_.end()));
    queue_.erase(kept, queue_.end());
    return result;
  }

  /// If more workers are idle than PW-3 keeps, takes one of them; the caller ends that worker.
  std::optional<Worker> surplus() {
    if (idle_.size() <= most_idle_) return std::nullopt;
    auto result = std::move(idle_.back());
    idle_.pop_back();
    return result;
  }

  std::size_t waiting() const noexcept { return queue_.size(); }

 private:
  std::size_t limit_;
  std::size_t most_idle_;
  std::ptrdiff_t computing_ = 0;  // may exceed the limit for a while after resumed()
  std::deque<Call> queue_;
  std::vector<Worker> idle_;
};

}  // namespace troupe::calls
