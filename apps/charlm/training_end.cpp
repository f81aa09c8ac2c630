// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/train_test.cpp, tests/hosts/training_test.cpp
#include "apps/charlm/training_run.hpp"

#include <chrono>
#include <memory>

#include "apps/charlm/advice.hpp"
#include "apps/charlm/figures.hpp"
#include "apps/charlm/generation.hpp"
#include "apps/charlm/gradient_check.hpp"
#include "apps/charlm/summary.hpp"

namespace troupe::apps::charlm {

/// Generates text from the trained model. Returns nothing if a stop came before the end of the text.
std::optional<std::string> training_run::sample() {
  copy_parameters(pipeline_->parameters(), *replica_);
  generation_settings drawn;
  drawn.length = options_.sample;
  drawn.seed = state_.how.seed;
  const auto& characters = data_->words.characters();
  drawn.prompt = {characters.find(U'\n') != std::u32string::npos ? U'\n' : characters[0]};
  const auto text = generate(*replica_, state_.shape, data_->words, drawn, [this](char32_t) { return !stopped(); });
  if (stopped()) return {};
  return to_utf8(text);
}

/// Saves and validates the trained model, and writes the files of the run. Returns false if a stop came before the files were
/// written.
bool training_run::finish() {
  save();
  end_.trained();
  if (stopped()) return false;
  const auto validation_loss = pipeline_->evaluate(data_->validation);
  if (metrics_->validation_losses().empty() || metrics_->validation_losses().back().first != static_cast<double>(state_.step))
    metrics_->add_validation(state_.step, validation_loss, state_.seconds);
  const auto text = stopped() ? std::nullopt : sample();
  if (!text) return false;
  write_files(validation_loss, *text);
  return true;
}

/// Returns the trace of all nodes. If a node does not give its part, returns the trace of the driver alone, because the run is
/// complete all the same.
std::string training_run::collected_trace() {
  try {
    return driver_->collect_trace(nodes_->names());
  } catch (const error& missing) {
    progress_.message(std::string("trace.json has what the driver did, and nothing of the other nodes: ") + missing.what());
    return driver_->collect_trace({});
  }
}

void training_run::write_files(double validation_loss, const std::string& sample) {
  write_whole_file(folder_.chart(), loss_chart(*metrics_, data_->trigram));
  if (options_.trace) write_whole_file(folder_.trace(), collected_trace());
  run_summary summary;
  summary.validation_loss = validation_loss;
  summary.trigram_loss = data_->trigram;
  summary.tokens_per_second = clock_.seconds_per_step() > 0 ? tokens_per_step() / clock_.seconds_per_step() : 0;
  summary.single_process = single_process_.speed();
  summary.work = work_;
  summary.most_held = most_held_;
  summary.verified_steps = verification_.steps();
  summary.verified_parameters = verification_.parameters();
  summary.seconds = seconds_since(begun_);
  write_whole_file(folder_.summary(), summary.to_json(state_));
  std::vector<std::string> files{"summary.json", "metrics.jsonl", "loss.svg", "checkpoint/"};
  if (options_.trace) files.insert(files.end() - 1, "trace.json");
  for (const auto& line : summary.lines(state_, sample, {folder_.path().string(), files, generate_command(options_)}))
    progress_.message(line);
}

int training_run::interrupted() {
  progress_.finish();
  if (pipeline_ && state_.step > 0) save();
  end_.tell_stop(progress_, state_.step);
  return 128 + stop_.number();
}

void training_run::rethrow_with_node(const std::exception& failure) {
  end_save_after_failure();
  end_.disarm();
  progress_.finish();
  const auto lost = nodes_ ? nodes_->lost(std::chrono::milliseconds(150)) : std::nullopt;
  std::string text = lost ? "lost node " + *lost : std::string(failure.what());
  text += lost || state_.step > 0 ? " (at step " + std::to_string(state_.step) + ")" : "";
  const auto* reason = dynamic_cast<const error*>(&failure);
  if (options_.retry == 0 && reason != nullptr && is_lost_stage(*reason, has_begun()))
    text += "; with --retry N the run waits for the stage and goes on by itself, N times at most";
  text += end_.saved_text();
  if (nodes_) nodes_->stop();
  throw std::runtime_error(text);
}

}  // namespace troupe::apps::charlm
