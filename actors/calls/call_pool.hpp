// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <troupe/messages/ids.hpp>

namespace troupe::calls {

/// Decides which worker runs which call. A call starts only while fewer than `limit` calls compute. A call that waits for
/// another call frees its worker slot meanwhile, so nested calls never wait for each other's workers. When the waiting call
/// goes on, more than `limit` calls compute for a while. Calls have a depth: a call of depth n makes calls of depth n + 1. The
/// number of calls that have begun is bounded for each depth. So the number of workers is bounded if the depth is.
///   PW-1  a call waits in the queue only while at least `limit` calls compute, most_begun() calls of its depth have begun and
///         not ended, or its caller has no credit (see next()). A call that waits for a deeper call never keeps that call from
///         starting.
///   PW-2  calls of one depth and caller start in the order of add(). All calls start in this order, except that calls whose
///         depth or caller is held back (PW-1) may start later.
///   PW-3  surplus() hands out idle workers until `most_idle` are left, or `limit` if that is more. unneeded() hands out the
///         workers that were idle all the time since the last unneeded().
///   PW-4  a call that take() has removed never starts; the other calls keep their order.
///   PW-5  add(), take() and idle() take at most a time that grows with the logarithm of the number of calls. The time of
///         next() grows with the number of callers, and with the number of depths that are held back. For a caller without
///         credit, next() only asks `has_credit`.
///   PW-6  a call of a series takes no worker slot of its own: the series has the slot of its first call.
template <class Worker, class Call>
class call_pool {
 public:
  static constexpr std::size_t no_bound = std::numeric_limits<std::size_t>::max();

  explicit call_pool(std::size_t limit, std::size_t most_idle = 0, std::size_t most_begun = no_bound)
      : limit_(limit == 0 ? 1 : limit), most_idle_(std::max(limit_, most_idle)), most_begun_(std::max(limit_, most_begun)) {}

  /// The call to start, and an idle worker for the call. If `worker` is empty, the caller has to make a worker.
  struct start {
    std::optional<Worker> worker;
    Call call;
  };

  /// `caller`: the node that made the call. Returns the number of the call, for take(); no call has the number 0.
  std::uint64_t add(Call call, std::size_t depth = 0, node_id caller = {}) {
    auto& waiting = callers_[caller];
    auto& queue = waiting.queues[depth];
    if (queue.empty()) waiting.heads.insert({last_ + 1, depth});
    queue.emplace(++last_, std::move(call));
    return last_;
  }
  /// Removes a call from the queue. `depth`, `caller`: as add() got them. False if the call is not in the queue.
  bool take(std::uint64_t number, std::size_t depth = 0, node_id caller = {}) {
    const auto of = callers_.find(caller);
    if (of == callers_.end()) return false;
    const auto queue = of->second.queues.find(depth);
    if (queue == of->second.queues.end()) return false;
    const auto call = queue->second.find(number);
    if (call == queue->second.end()) return false;
    remove(of, queue, call);
    return true;
  }
  /// To be called when a call of this depth has ended.
  void idle(Worker worker, std::size_t depth = 0) {
    not_started(depth);
    idle_.push_back(std::move(worker));
  }
  /// To be called if a call from next() does not start because no worker could be made for the call.
  void not_started(std::size_t depth = 0) {
    --computing_;
    ended_in_series(depth);
  }
  /// To be called when a call from next_in_series() has ended, and the series goes on. The last call of a series: idle().
  void ended_in_series(std::size_t depth = 0) {
    if (const auto found = begun_.find(depth); found != begun_.end() && --found->second == 0) begun_.erase(found);
  }
  /// To be called when a running call begins to wait for another call; resumed() when the call goes on.
  void blocked() { --computing_; }
  void resumed() { ++computing_; }

  /// Removes and returns the next call that may start; empty if no call may start.
  std::optional<start> next() {
    return next([](node_id) { return true; });
  }
  /// As next(), but calls of a node for which `has_credit` returns false do not start.
  template <class Predicate>
  std::optional<start> next(const Predicate& has_credit) {
    if (computing_ >= static_cast<std::ptrdiff_t>(limit_)) return std::nullopt;
    const auto found = first(has_credit);
    if (!found) return std::nullopt;
    ++computing_;
    start result{std::nullopt, take_out(*found)};
    if (!idle_.empty()) {
      result.worker = std::move(idle_.back());
      idle_.pop_back();
      least_idle_ = std::min(least_idle_, idle_.size());
    }
    return result;
  }
  /// Removes and returns the call that would start next, whatever calls compute: it runs behind the calls of a series, on their
  /// thread. Empty if `joins` returns false for the call, or if no call may start.
  template <class Predicate, class Joins>
  std::optional<Call> next_in_series(const Predicate& has_credit, const Joins& joins) {
    const auto found = first(has_credit);
    if (!found || !joins(found->of->second.queues.at(found->call.depth).begin()->second)) return std::nullopt;
    return take_out(*found);
  }

  /// If more workers are idle than PW-3 allows, removes and returns one of them; the caller ends that worker.
  std::optional<Worker> surplus() {
    if (idle_.size() <= most_idle_) return std::nullopt;
    auto result = std::move(idle_.back());
    idle_.pop_back();
    least_idle_ = std::min(least_idle_, idle_.size());
    return result;
  }

  /// Removes and returns the workers that were idle all the time since the last unneeded(); the caller ends them.
  std::vector<Worker> unneeded() {
    const auto end = idle_.begin() + static_cast<std::ptrdiff_t>(std::min(least_idle_, idle_.size()));
    std::vector<Worker> result(std::make_move_iterator(idle_.begin()), std::make_move_iterator(end));
    idle_.erase(idle_.begin(), end);
    least_idle_ = idle_.size();
    return result;
  }
  bool has_idle() const noexcept { return !idle_.empty(); }

  /// How many calls of this depth may have started and not ended: fewer for deeper calls. If 256 calls of the first depth may
  /// have begun, calls of 4,096 depths have at most 9,000 workers.
  std::size_t most_begun(std::size_t depth) const noexcept {
    if (most_begun_ == no_bound || depth < 2) return most_begun_;
    if (depth >= very_deep) return 1;
    return std::min(most_begun_, std::max(least_begun, most_begun_ >> std::min<std::size_t>(depth / 2, 32)));
  }

 private:
  static constexpr std::size_t least_begun = 16;  // for a depth below very_deep
  static constexpr std::size_t very_deep = 256;

  using queue = std::map<std::uint64_t, Call>;  // by the number of the call; never empty
  struct queue_head {
    std::uint64_t number;  // of a call
    std::size_t depth;
    auto operator<=>(const queue_head&) const = default;
  };
  struct waiting_calls {
    std::map<std::size_t, queue> queues;  // by depth
    std::set<queue_head> heads;           // the first call of each queue
  };
  using callers = std::map<node_id, waiting_calls>;  // callers with calls in a queue
  struct found_call {
    typename callers::iterator of;
    queue_head call;
  };

  /// The first call whose depth and caller are not held back.
  template <class Predicate>
  std::optional<found_call> first(const Predicate& has_credit) {
    found_call result{callers_.end(), {std::numeric_limits<std::uint64_t>::max(), 0}};
    for (auto at = callers_.begin(); at != callers_.end(); ++at) {
      const auto& waiting = at->second.heads;
      if (waiting.begin()->number > result.call.number || !has_credit(at->first)) continue;
      const auto found =
        std::find_if(waiting.begin(), waiting.end(), [this](const auto& each) { return may_start(each.depth); });
      if (found != waiting.end() && found->number <= result.call.number) result = {at, *found};
    }
    return result.of == callers_.end() ? std::nullopt : std::optional(result);
  }

  Call take_out(const found_call& which) {
    ++begun_[which.call.depth];
    const auto queue = which.of->second.queues.find(which.call.depth);
    auto result = std::move(queue->second.begin()->second);
    remove(which.of, queue, queue->second.begin());
    return result;
  }

  void remove(typename callers::iterator of, typename std::map<std::size_t, queue>::iterator from,
              typename queue::iterator call) {
    auto& [depth, calls] = *from;
    of->second.heads.erase({calls.begin()->first, depth});
    calls.erase(call);
    if (!calls.empty())
      of->second.heads.insert({calls.begin()->first, depth});
    else
      of->second.queues.erase(from);
    if (of->second.queues.empty()) callers_.erase(of);
  }

  bool may_start(std::size_t depth) const {
    const auto found = begun_.find(depth);
    return found == begun_.end() || found->second < most_begun(depth);
  }

  std::size_t limit_;
  std::size_t most_idle_;
  std::size_t most_begun_;
  std::ptrdiff_t computing_ = 0;  // may exceed the limit for a while after resumed()
  std::uint64_t last_ = 0;
  callers callers_;
  std::map<std::size_t, std::size_t> begun_;  // calls that have started and have not ended, by depth
  std::vector<Worker> idle_;                  // the last element was used last
  std::size_t least_idle_ = 0;                // the smallest size of idle_ since the last unneeded()
};

}  // namespace troupe::calls
