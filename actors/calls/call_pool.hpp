// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

namespace troupe::calls {

/// Decides which worker runs which call. At most `limit` calls compute at once. A call that waits for another call frees its
/// worker slot while it waits, so calls nested through nodes never wait for each other's workers.
///   PW-1  while a call waits in the queue, `limit` calls are computing.
///   PW-2  calls start in the order in which they came.
///   PW-3  surplus() hands out idle workers until `most_idle` are left.
template <class Worker, class Call>
class call_pool {
 public:
  explicit call_pool(std::size_t limit, std::size_t most_idle = 0)
      : limit_(limit == 0 ? 1 : limit), most_idle_(std::max(limit_, most_idle)) {}

  /// A call and the idle worker for it. Without a worker the caller has to make one.
  struct start {
    std::optional<Worker> worker;
    Call call;
  };

  void add(Call call) { queue_.push_back(std::move(call)); }
  void idle(Worker worker) {
    --computing_;
    idle_.push_back(std::move(worker));
  }
  /// Says that a call from next() did not start: there is no worker for it.
  void not_started() { --computing_; }
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

  /// An idle worker that the caller has to end, if there are more than `most_idle`.
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
  std::ptrdiff_t computing_ = 0;  // resumed calls may exceed the limit for a while
  std::deque<Call> queue_;
  std::vector<Worker> idle_;
};

}  // namespace troupe::calls
