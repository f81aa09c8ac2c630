// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/train_test.cpp, tests/hosts/training_test.cpp
#include "apps/charlm/training_run.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps::charlm {

/// Makes the object that waits for the stages that are away.
stage_wait training_run::wait_for_stages() {
  return {
    {[this] { return nodes_ ? nodes_->missing(*driver_) : std::vector<std::string>(); },
     [this](auto until) { nodes_->bring_back(*driver_, until); }, [this](const std::string& line) { progress_.message(line); }},
    std::chrono::seconds(options_.retry_wait)};
}

/// Waits for a save that was begun before the failure. The save may succeed all the same.
void training_run::end_save_after_failure() {
  try {
    end_save();
  } catch (const error& failure) {
    progress_.message(std::string("the last checkpoint was not saved: ") + failure.what());
  }
}

/// Runs the training, from the first meeting with the stages to the end. If a stage is away, waits until all are up and goes
/// back to the last checkpoint, as often as the options say. Returns false if a stop came first.
bool training_run::train_to_end() {
  std::optional<stage_wait> wait;  // set while a stage is away
  std::string why;                 // why the last attempt with more than 1 s left failed
  for (std::int64_t retry = 0; !stopped();) {
    const bool had_time = wait && wait->left() > std::chrono::seconds(1);
    try {
      if (wait && !wait->until_all_are_up(stop_)) return false;
      get_ready(wait ? wait->end() : stage_nodes::clock::time_point::max());
      if (stopped()) return false;
      if (wait)
        progress_.message("all stages are up; going on from step " + std::to_string(state_.step) + " (retry " +
                          std::to_string(retry) + " of " + std::to_string(options_.retry) + ")");
      wait.reset();
      steps();
      return !stopped() && finish();
    } catch (const error& failure) {
      if (!wait || had_time) why = failure.what();
      if (wait && wait->is_over()) throw error(failure.code(), wait->over_text(why));
      if (!wait && (retry == options_.retry || !is_lost_stage(failure, has_begun()))) throw;
      end_save_after_failure();
      pipeline_.reset();
      if (wait) {
        // The cause may be a stage that was lost meanwhile, that does not reach the next stage yet, or whose disk is full.
        wait->tell_failure(failure.what());
        stop_.wait_for(std::chrono::milliseconds(100));
        continue;
      }
      ++retry;
      progress_.finish();
      progress_.message(
        (has_begun() ? "lost a stage at step " + std::to_string(state_.step) + ": " : "not all stages are up: ") +
        failure.what());
      wait.emplace(wait_for_stages());
    }
  }
  return false;
}

}  // namespace troupe::apps::charlm
