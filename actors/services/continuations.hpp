// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/services/continuations_test.cpp, tests/devices/node_workers_test.cpp
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <troupe/actors/contracts/workers.hpp>

namespace troupe::services {

/// The compute threads of a node for backward passes. One is enough on a node without accelerators. With device workers, a burst may
/// wait for a device, and the bursts of other passes go on by another thread meanwhile. Any thread may use it once all actors are in.
///   CN-1  next() gives the actor with the fewest bursts and sums that wait or run, and of several such actors the one that came first.
class continuations {
 public:
  using actor = contracts::cpu_continuation_actor;

  void add(actor which) { all_.push_back({std::move(which), std::make_shared<char>()}); }

  /// For what nobody waits for. No actor before add() and after clear().
  actor first() const { return all_.empty() ? actor{} : all_.front().which; }
  /// For a burst or a sum, which keeps the second value until it is over. Pre: add() was called.
  std::pair<actor, std::shared_ptr<void>> next() const {
    const auto least = std::min_element(
      all_.begin(), all_.end(), [](const entry& a, const entry& b) { return a.bursts.use_count() < b.bursts.use_count(); });
    return {least->which, least->bursts};
  }

  std::vector<actor> all() const {
    std::vector<actor> result;
    for (const auto& each : all_) result.push_back(each.which);
    return result;
  }
  void clear() noexcept { all_.clear(); }

 private:
  struct entry {
    actor which;
    std::shared_ptr<char> bursts;  // each burst and each sum of the actor holds it
  };

  std::vector<entry> all_;
};

}  // namespace troupe::services
