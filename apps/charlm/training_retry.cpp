// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/train_test.cpp, tests/hosts/training_test.cpp
#include "apps/charlm/training_run.hpp"

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

#include "apps/charlm/stage_wait.hpp"

namespace troupe::apps::charlm {

/// Trains to the end. If a stage is lost, goes back to the last checkpoint, as often as the options say. Returns false if a stop
/// came first.
bool training_run::train_to_end() {
  saved_ = state_;
  for (std::int64_t retry = 1;; ++retry) {
    try {
      steps();
      return !stopped() && finish();
    } catch (const error& failure) {
      if (retry > options_.retry || !is_lost_stage(failure)) throw;
      if (!go_back(failure.what(), retry)) return false;
    }
  }
}

/// Waits until all stages are up, and goes back to the last checkpoint. Returns false if a stop came first.
bool training_run::go_back(const std::string& failure, std::int64_t retry) {
  progress_.finish();
  progress_.message("lost a stage at step " + std::to_string(state_.step) + ": " + failure);
  pipeline_.reset();
  stage_wait wait({[this] { return nodes_->missing(*driver_); }, [this] { nodes_->bring_back(*driver_); },
                   [this](const std::string& line) { progress_.message(line); }},
                  std::chrono::seconds(options_.retry_wait));
  std::string told;
  while (!pipeline_) {
    if (!wait.until_all_are_up(stop_)) return false;
    try {
      go_on_from_saved();
    } catch (const error& again) {
      // A stage was lost meanwhile, or does not reach the next stage yet, or has no room on its disk.
      pipeline_.reset();
      if (wait.is_over()) throw;
      if (std::exchange(told, again.what()) != again.what()) progress_.message(std::string("trying again: ") + again.what());
      stop_.wait_for(std::chrono::milliseconds(100));
    }
  }
  progress_.message("all stages are up; going on from step " + std::to_string(state_.step) + " (retry " +
                    std::to_string(retry) + " of " + std::to_string(options_.retry) + ")");
  return true;
}

void training_run::go_on_from_saved() {
  state_ = saved_;
  make_stages();
  if (end_.is_saved(state_.step)) pipeline_->optimiser().load(folder_.checkpoint());
  metrics_ = std::make_unique<metrics>(folder_.metrics(), state_.step);
}

}  // namespace troupe::apps::charlm
