// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "apps/signals.hpp"

namespace troupe::apps::charlm {

/// Waits until all stages are up. A stage that is not up is away.
///   SW-1  a person is told which stages are away, since when, and how long the wait may last. This happens at the beginning,
///         when other stages are away than before, and every 30 s.
///   SW-2  the wait ends when no stage is away, when a stop is asked for, or when the patience is over. The patience is one
///         time limit for all waits together, and starts at the construction of the object.
///   SW-3  a person is told why stages that are up can't be made ready. This happens at once, when the reason changes, and
///         every 30 s. Reasons that differ only in numbers, such as times, count as the same.
class stage_wait {
 public:
  using clock = std::chrono::steady_clock;

  struct actions {
    std::function<std::vector<std::string>()> away;     // the names of the stages that are not up
    std::function<void(clock::time_point)> bring_back;  // tries to bring these stages back, at most until that time
    std::function<void(const std::string&)> tell;       // gets lines for a person
  };

  stage_wait(actions of, std::chrono::milliseconds patience) : actions_(std::move(of)), patience_(patience) {}

  /// Waits. Returns false if a stop was asked for. Throws std::runtime_error with the names of the stages that are away when
  /// the patience is over.
  bool until_all_are_up(const stop_signal& stop);
  /// Tells a person that the stages are up but can't be made ready, and why. The caller then tries again.
  void tell_failure(const std::string& why);
  clock::time_point end() const { return begun_ + patience_; }
  /// Returns the text of the error for the end of the patience. `why`: why the last attempt failed.
  std::string over_text(const std::string& why) const;
  clock::duration left() const { return end() - clock::now(); }
  bool is_over() const { return left() <= clock::duration::zero(); }

 private:
  void tell(const std::vector<std::string>& away);
  void tell_once(const std::string& key, const std::string& line);
  static std::string time_of_day();

  actions actions_;
  std::chrono::milliseconds patience_;
  clock::time_point begun_ = clock::now();
  std::string since_ = time_of_day();
  std::string told_;
  clock::time_point told_at_;
};

}  // namespace troupe::apps::charlm
