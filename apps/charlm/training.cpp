// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/training_run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include <troupe/actors/support/steady_clock.hpp>

#include "apps/charlm/figures.hpp"
#include "apps/charlm/gradient_check.hpp"
#include "apps/charlm/training.hpp"

namespace troupe::apps::charlm {

void training_run::verified_steps() {
  const auto before = verification_.steps();
  while (verification_.steps() < options_.verify_steps && !ended()) {
    copy_parameters(pipeline_->parameters(), *replica_);
    one_step(true);
  }
  if (verification_.steps() > before) progress_.message(verification_.text());
}

void training_run::one_step(bool verified) {
  const auto begin = std::chrono::steady_clock::now();
  const auto begin_ns = support::steady_ns();
  const auto rate = state_.how.rate_at(state_.step, state_.fraction());
  const auto windows = data_->windows.training_batch(state_.how.seed, state_.step, state_.how.batch);
  const auto result = pipeline_->train_step(windows, rate, verified);
  if (verified)
    verification_.check(*replica_, windows, pipeline_->micro_batch_sizes(), state_.step + 1, nodes_->names(), result.gradients);
  if (!std::isfinite(result.loss))
    throw std::runtime_error("step " + std::to_string(state_.step + 1) + ": expected a finite loss, but it is " +
                             fixed(result.loss, 3) + "; try a smaller --learning-rate");
  driver_->trace("step " + std::to_string(state_.step + 1), "steps", begin_ns, support::steady_ns());
  const auto seconds = seconds_since(begin);
  if (!verified) note_step(result, seconds);
  ++state_.step;
  state_.seconds = clock_.seconds();
  metrics_->add({state_.step, result.loss, rate, result.gradient_norm, tokens_per_step() / seconds, state_.seconds});
  report(result.loss, seconds);
}

void training_run::note_step(const step_result& of, double seconds) {
  clock_.note_step(seconds);
  work_ += of.work;
  most_held_.resize(of.most_held.size());
  for (std::size_t i = 0; i < of.most_held.size(); ++i) most_held_[i] = std::max(most_held_[i], of.most_held[i]);
}

void training_run::report(double loss, double step_seconds) {
  recent_loss_ = recent_loss_ == 0 ? loss : 0.9 * recent_loss_ + 0.1 * loss;
  const auto usual = clock_.seconds_per_step() > 0 ? clock_.seconds_per_step() : step_seconds;
  progress_report now;
  now.step = state_.step;
  now.fraction = state_.fraction();
  now.loss = recent_loss_;
  if (!metrics_->validation_losses().empty()) now.validation_loss = metrics_->validation_losses().back().second;
  now.tokens_per_second = tokens_per_step() / usual;
  now.seconds_left = state_.planned_steps > 0 ? static_cast<double>(state_.planned_steps - state_.step) * usual
                                              : state_.planned_seconds - state_.seconds;
  progress_.report(now);
}

void training_run::validate() { metrics_->add_validation(state_.step, pipeline_->evaluate(data_->validation), state_.seconds); }

/// Begins a save, which is written beside the next steps.
void training_run::start_save() {
  end_save();
  if (end_.is_saved(state_.step)) return;
  saving_.emplace(state_, pipeline_->optimiser().start_save(folder_.checkpoint(), state_.to_attributes(), node_folder()));
}

/// Waits for the save that was begun.
void training_run::end_save() {
  if (!saving_) return;
  const auto [state, written] = *std::exchange(saving_, std::nullopt);
  written.get();
  end_.saved(state.step);
  saved_ = state;
}

void training_run::save() {
  start_save();
  end_save();
}

void training_run::steps() {
  clock_.start(state_.seconds);
  verified_steps();
  for (std::int64_t done = 0; !ended(); ++done) {
    driver_->set_profiling(options_.trace && done < options_.profile_steps);
    one_step();
    if (saving_ && saving_->second.ready()) end_save();
    if (state_.step % options_.validate_every == 0 && !ended()) validate();
    if (state_.step % options_.checkpoint_every == 0 && !ended()) start_save();
    const auto turn_begun = std::chrono::steady_clock::now();
    if (!ended() && single_process_.run_due(state_.fraction())) clock_.leave_out(std::chrono::steady_clock::now() - turn_begun);
  }
  progress_.finish();
}

int training_run::run() {
  prepare();
  end_.allow_time();
  try {
    start_driver();
    const auto status = train_to_end() ? 0 : interrupted();
    pipeline_.reset();
    if (nodes_) nodes_->stop();
    driver_->stop();
    end_.disarm();
    return status;
  } catch (const std::exception& failure) {
    rethrow_with_node(failure);
  }
}

int train(const train_options& options, const stop_signal& stop) { return training_run{options, stop}.run(); }

}  // namespace troupe::apps::charlm
