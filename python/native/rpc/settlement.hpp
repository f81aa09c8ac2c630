// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/native/settlement_test.cpp, tests/python/rpc/agent_test.py
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <troupe/actors/future.hpp>
#include <troupe/messages/mutex.hpp>

namespace torchtroupe {

/// The rounds in which the workers of a group find that no request is open. A worker enters a round once its own requests have
/// ended. The worker then tells how many requests it began after the last round. If all workers together began none, no request
/// is open. One worker has the settlement, and the others ask it.
///   RS-1  a round ends for all workers at once, with the same sum, when each worker has entered it. All have been told before
///         wait() returns.
///   RS-2  when a worker is lost, the open rounds fail with its name, and so do later ones until it is found again: the same
///         process, since a later one of the same name enters no round.
class settlement {
 public:
  using outcome = troupe::future<std::uint64_t>;  // of a round: the sum

  explicit settlement(std::size_t workers) : workers_(workers) {}

  /// `told`: its continuation, which is there already, tells the worker.
  void enter(std::uint64_t round, const std::string& worker, std::uint64_t begun, outcome told) {
    troupe::checked_unique_lock lock(mutex_);
    if (!lost_.empty()) {
      const auto why = error_of_loss();
      lock.unlock();
      return told.set_error(why);
    }
    auto& all = rounds_[round];
    all.sum += begun;
    all.entered.insert(worker);
    all.waiting.push_back(std::move(told));
    if (all.entered.size() < workers_) return;
    const auto ended = rounds_.extract(round).mapped();
    const std::lock_guard telling(telling_);
    lock.unlock();
    for (auto each : ended.waiting) each.set_value(ended.sum);
  }

  /// Returns when all workers have been told of the rounds that have ended.
  void wait() { const std::lock_guard told(telling_); }

  void lost(const std::string& worker, const std::string& why) {
    troupe::checked_unique_lock lock(mutex_);
    lost_.emplace_back(worker, "worker '" + worker + "' is lost (" + why + "), so the group can't end together");
    const auto failed = std::exchange(rounds_, {});
    const auto reason = error_of_loss();
    lock.unlock();
    for (const auto& [number, each] : failed)
      for (auto open : each.waiting) open.set_error(reason);
  }

  void found(const std::string& worker) {
    const troupe::checked_lock lock(mutex_);
    std::erase_if(lost_, [&](const auto& each) { return each.first == worker; });
  }

  /// Why no round can end now; empty if no worker is lost.
  std::string loss() {
    const troupe::checked_lock lock(mutex_);
    return lost_.empty() ? std::string() : lost_.front().second;
  }

 private:
  struct round {
    std::uint64_t sum = 0;
    std::set<std::string> entered;
    std::vector<outcome> waiting;
  };
  troupe::error error_of_loss() const TROUPE_REQUIRES(mutex_) { return {troupe::errc::peer_down, lost_.front().second}; }

  const std::size_t workers_;
  std::mutex telling_;  // locked while workers are told of the end of a round
  troupe::checked_mutex mutex_;
  std::map<std::uint64_t, round> rounds_ TROUPE_GUARDED_BY(mutex_);
  /// Workers, the first lost one first, and why no round can end.
  std::vector<std::pair<std::string, std::string>> lost_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace torchtroupe
