// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "apps/charlm/cluster.hpp"
#include "apps/charlm/progress.hpp"
#include "apps/charlm/run_folder.hpp"
#include "apps/charlm/train_options.hpp"
#include "apps/signals.hpp"

namespace troupe::apps::charlm {

/// Ends a run early when a stop signal has come: reports the stop, and ends all processes of the run.
///   RE-1  a stop is reported once, with the step of the last checkpoint and the command that continues from it.
///   RE-2  after a stop the process has the time `time_to_save` to end; before allow_time() it has no time. A process that
///         still runs when the time is over stops the stages, unlocks the folder and ends.
class run_end {
 public:
  /// Before allow_time(), a stop ends the process at once, because the run has nothing to save.
  run_end(const train_options& options, const stop_signal& stop, const run_folder& folder);

  /// From now on a stop leaves time for the running step, the checkpoint and the end.
  void allow_time() { last_exit_->set_patience(time_to_save); }
  /// Sets the stages that RE-2 stops.
  void set_stages(stage_nodes& nodes) { nodes_ = &nodes; }
  /// Records that the checkpoint in the folder is that of this step.
  void saved(std::int64_t step) { saved_step_ = step; }
  bool is_saved(std::int64_t step) const { return saved_step_ == step; }
  void trained() { trained_ = true; }

  /// Reports the stop at `step`, once.
  void tell_stop(progress& to, std::int64_t step);
  /// Returns a text such as "; the checkpoint of step 20 ..."; empty if this run has no checkpoint.
  std::string saved_text() const;

  /// Lifts the limit of RE-2: from now on a stop does not end the process, so the run has to end by itself.
  void disarm() { last_exit_->disarm(); }

 private:
  static constexpr std::chrono::milliseconds time_to_save{1200};

  void leave() noexcept;

  const train_options& options_;
  const run_folder& folder_;
  std::atomic<std::int64_t> saved_step_{-1};
  std::atomic<bool> trained_{false};
  std::atomic<bool> told_{false};
  std::atomic<stage_nodes*> nodes_{nullptr};
  std::optional<last_exit> last_exit_;  // the last member: its thread uses the other members
};

}  // namespace troupe::apps::charlm
