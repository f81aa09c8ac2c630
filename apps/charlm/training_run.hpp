// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/charlm/training_test.cpp, tests/apps/train_test.cpp, tests/hosts/training_test.cpp
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <c10/core/Device.h>

#include <troupe/actors/future.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/messages/errors.hpp>

#include "apps/charlm/cluster.hpp"
#include "apps/charlm/corpus.hpp"
#include "apps/charlm/gradient_check.hpp"
#include "apps/charlm/metrics.hpp"
#include "apps/charlm/pipeline.hpp"
#include "apps/charlm/progress.hpp"
#include "apps/charlm/run_end.hpp"
#include "apps/charlm/run_folder.hpp"
#include "apps/charlm/run_state.hpp"
#include "apps/charlm/single_process.hpp"
#include "apps/charlm/stage_wait.hpp"

namespace troupe::apps::charlm {

/// The data of a run: the vocabulary of its text, and the windows for training and for validation. For comparison, it has the
/// loss of a trigram model on the validation blocks.
struct training_data {
  training_data(text source, vocabulary of_text, std::int64_t context)
      : words(std::move(of_text)),
        windows(std::move(source), words, context),
        validation(windows.validation_windows()),
        trigram(trigram_loss(windows, words.size())) {}

  vocabulary words;
  corpus windows;
  batch validation;
  double trigram;  // loss of the trigram model, nats per character
};

/// Whether the cause of the error may be a stage that is away or stops, and that may come back. `has_begun`: whether the stages
/// have been ready before. If so, a stage that took the driver for lost has deleted the driver's objects and contexts. Calls to
/// this stage then fail with unknown_function or unknown_context.
inline bool is_lost_stage(const error& failure, bool has_begun) {
  const auto code = failure.code();
  const bool is_away =
    code == errc::peer_down || code == errc::unknown_peer || code == errc::stopping || code == errc::deadline_passed;
  return is_away || (has_begun && (code == errc::unknown_function || code == errc::unknown_context));
}

/// One run of `troupe train`. Its sources: training_start.cpp, training.cpp (the steps), training_retry.cpp, training_end.cpp.
class training_run {
 public:
  training_run(const train_options& options, const stop_signal& stop)
      : options_(options), stop_(stop), progress_(progress::on_stdout()), folder_(options.out), end_(options, stop, folder_) {}

  /// As train() in training.hpp.
  int run();

 private:
  void prepare();
  void start_driver();
  void meet_stages(stage_nodes::clock::time_point until);
  void make_stages();
  void get_ready(stage_nodes::clock::time_point until);
  void open_folder();
  void measure_one_process();
  void verified_steps();
  void steps();
  bool train_to_end();
  stage_wait wait_for_stages();
  void one_step(bool verified = false);
  void note_step(const step_result& of, double seconds);
  void report(double loss, double step_seconds);
  void validate();
  void start_save();
  void end_save();
  void save();
  void end_save_after_failure();
  bool finish();
  std::optional<std::string> sample();
  std::string collected_trace();
  void write_files(double validation_loss, const std::string& sample);
  /// Returns the folder of this run below the data folder of each node; empty if the driver writes all parts of checkpoints. If
  /// this program starts the stages, --node-checkpoints is their data folder.
  std::string node_folder() const {
    if (options_.node_checkpoints.empty()) return {};
    return options_.starts_stages() ? state_.run : (std::filesystem::path(options_.node_checkpoints) / state_.run).string();
  }
  bool stopped() const { return stop_.requested(); }
  bool has_begun() const { return metrics_ != nullptr; }
  bool ended() const { return stop_.requested() || state_.finished(); }
  double tokens_per_step() const { return static_cast<double>(state_.how.batch * state_.shape.context); }
  int interrupted();
  [[noreturn]] void rethrow_with_node(const std::exception& failure);

  const train_options& options_;
  const stop_signal& stop_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  progress progress_;
  run_folder folder_;
  run_state state_;
  run_state saved_;  // at the last checkpoint; before the first one, at the start
  std::unique_ptr<training_data> data_;
  std::unique_ptr<metrics> metrics_;
  c10::Device device_ = c10::kCPU;  // of the stages, and of the computations in this process for comparison
  std::unique_ptr<whole_model> replica_;
  std::unique_ptr<node> driver_;
  std::unique_ptr<stage_nodes> nodes_;
  std::unique_ptr<pipeline> pipeline_;
  std::optional<std::pair<run_state, future<done>>> saving_;  // a save that was begun: its state, and when it is whole
  single_process_turns single_process_{options_.single_process_seconds, [this] { return stopped(); }};
  verification verification_;
  training_clock<> clock_;
  work_times work_;                      // of the steps that clock_ counts, as in step_result
  std::vector<std::int64_t> most_held_;  // likewise
  double recent_loss_ = 0;
  run_end end_;  // the last member: its thread uses the other members
};

}  // namespace troupe::apps::charlm
