// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/training.hpp"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <troupe/actors/node.hpp>

#include "apps/charlm/advice.hpp"
#include "apps/charlm/cluster.hpp"
#include "apps/charlm/corpus.hpp"
#include "apps/charlm/figures.hpp"
#include "apps/charlm/generation.hpp"
#include "apps/charlm/gradient_check.hpp"
#include "apps/charlm/metrics.hpp"
#include "apps/charlm/modules.hpp"
#include "apps/charlm/pipeline.hpp"
#include "apps/charlm/progress.hpp"
#include "apps/charlm/run_end.hpp"
#include "apps/charlm/run_folder.hpp"
#include "apps/charlm/run_state.hpp"
#include "apps/charlm/single_process_turns.hpp"
#include "apps/charlm/summary.hpp"
#include "apps/charlm/training_clock.hpp"
#include "apps/charlm/training_plan.hpp"
#include "apps/charlm/trigram.hpp"
#include "apps/charlm/verification.hpp"

namespace troupe::apps::charlm {

namespace {

using clock = std::chrono::steady_clock;

std::int64_t now_ns() { return std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now().time_since_epoch()).count(); }

/// The text of a run: its characters, the windows for training and for validation, and the loss of a trigram model on the
/// validation blocks, for comparison.
struct training_data {
  training_data(const text& source, vocabulary of_text, std::int64_t context)
      : words(std::move(of_text)),
        windows(source, words, context),
        validation(windows.validation_windows()),
        trigram(trigram_loss(windows, words.size())) {}

  vocabulary words;
  corpus windows;
  batch validation;
  double trigram;  // loss of the trigram model, nats per character
};

/// One run.
class training {
 public:
  training(const train_options& options, const stop_signal& stop)
      : options_(options), stop_(stop), progress_(progress::on_stdout()), folder_(options.out), end_(options, stop, folder_) {}

  int run();

 private:
  void prepare();
  void start_nodes();
  void make_model();
  void open_folder();
  void measure_one_process();
  void verified_steps();
  void steps();
  void one_step(bool verified = false);
  void report(double loss, double step_seconds);
  void validate();
  void save();
  bool finish();
  std::optional<std::string> sample();
  void write_files(double validation_loss, const std::string& sample);
  /// The folder of this run on each node; empty if the driver writes all parts of checkpoints.
  std::string node_folder() const {
    return options_.node_checkpoints.empty() ? "" : (std::filesystem::path(options_.node_checkpoints) / state_.run).string();
  }
  bool stopped() const { return stop_.requested(); }
  bool ended() const { return stop_.requested() || state_.finished(); }
  double tokens_per_step() const { return static_cast<double>(state_.how.batch * state_.shape.context); }
  int interrupted();
  [[noreturn]] void rethrow_with_node(const std::exception& failure);

  const train_options& options_;
  const stop_signal& stop_;
  clock::time_point begun_ = clock::now();
  progress progress_;
  run_folder folder_;
  run_state state_;
  std::unique_ptr<training_data> data_;
  std::unique_ptr<metrics> metrics_;
  std::unique_ptr<whole_model> replica_;
  std::unique_ptr<node> driver_;
  std::unique_ptr<stage_nodes> nodes_;
  std::unique_ptr<pipeline> pipeline_;
  single_process_turns single_process_{options_.single_process_seconds, [this] { return stopped(); }};
  verification verification_;
  training_clock<> clock_;
  double recent_loss_ = 0;
  run_end end_;  // the last member: its thread uses the others
};

void training::prepare() {
  if (options_.resume && !folder_.has_checkpoint())
    throw std::runtime_error("expected a checkpoint to continue from in " + folder_.checkpoint() +
                             ", but there is none; leave --resume out to start a run, or name its folder with --out");
  state_ = options_.resume ? continued_state(options_, folder_.checkpoint()) : planned_state(options_);
  const auto source = text::read(state_.text_origin);
  if (options_.resume) {
    if (source.fingerprint() != state_.text_fingerprint)
      throw std::runtime_error("the checkpoint in " + folder_.checkpoint() + " is of another text (fingerprint " +
                               state_.text_fingerprint + ") than " + state_.text_origin + " (" + source.fingerprint() +
                               "); name the text it was trained on with --data, or start anew in another folder with --out");
    if (state_.finished())
      throw std::runtime_error("the run in " + folder_.path().string() + " has trained " + std::to_string(state_.step) +
                               " steps in " + fixed(state_.seconds, 1) + " s, which is all that was asked for; --steps or" +
                               " --seconds count from the beginning of the run: give more to train on");
  }
  state_.text_fingerprint = source.fingerprint();
  auto words = vocabulary::of(source.characters);
  state_.characters = to_utf8(words.characters());
  state_.shape.vocabulary = words.size();
  state_.shape.check();
  state_.how.check();
  if (state_.stages < 1 || state_.stages > state_.shape.blocks)
    throw std::runtime_error("--stages is expected to be 1 to " + std::to_string(state_.shape.blocks) +
                             " (the blocks), but is " + std::to_string(state_.stages));
  data_ = std::make_unique<training_data>(source, std::move(words), state_.shape.context);
  replica_ = std::make_unique<whole_model>(state_.shape, state_.stages, state_.how.seed);
  progress_.message("text: " + grouped(static_cast<double>(source.characters.size())) + " characters, " +
                    std::to_string(data_->words.size()) + " different, from " + source.origin + "; a trigram model scores " +
                    fixed(data_->trigram, 3) + " nats per character");
  std::int64_t parameters = 0;
  for (const auto& each : replica_->parameters()) parameters += each.numel();
  progress_.message("model: " + state_.shape.describe() + "; " + grouped(static_cast<double>(parameters)) + " parameters");
  // A checkpoint holds each parameter and two values of AdamW for each. While a checkpoint is saved, there are two of them.
  const auto parts = options_.node_checkpoints.empty() ? static_cast<std::uintmax_t>(parameters) * sizeof(float) * 3 * 2 : 0;
  folder_.expect_room(parts + 16'000'000);
}

/// From here on the folder belongs to this run.
void training::open_folder() {
  if (options_.resume) {
    progress_.message("continuing the run in " + folder_.path().string() + " from step " + std::to_string(state_.step));
  } else if (const auto earlier = folder_.set_aside()) {
    progress_.message("the run that was in " + folder_.path().string() + " is now in " + earlier->where +
                      (earlier->replaced ? ", in place of the one before it" : ""));
  }
  metrics_ = std::make_unique<metrics>(folder_.metrics(), options_.resume ? state_.step : -1);
}

void training::start_nodes() {
  settings mine;
  mine.name = "driver";
  mine.host = options_.host;
  mine.advertise = options_.advertise;
  mine.port = options_.port;
  mine.trace = options_.trace;
  options_.log.apply_to(mine);
  mine.deadline = std::chrono::milliseconds(std::llround(options_.deadline * 1000));
  driver_ = std::make_unique<node>(mine);
  add_charlm_modules(*driver_);
  const auto own = options_.cluster.empty();
  nodes_ = std::make_unique<stage_nodes>(
    own ? stage_nodes::start(*driver_, static_cast<std::size_t>(state_.stages), options_.log, stop_)
        : stage_nodes::join(*driver_, options_.cluster));
  end_.owns(*nodes_);
  if (stop_.requested()) return;
  if (static_cast<std::int64_t>(nodes_->names().size()) != state_.stages)
    throw std::runtime_error("expected " + std::to_string(state_.stages) + " nodes in " + options_.cluster +
                             ", one for each stage, but " + std::to_string(nodes_->names().size()) +
                             " are there; set --stages");
  state_.nodes.clear();
  for (const auto& name : nodes_->names()) state_.nodes += (state_.nodes.empty() ? "" : ",") + name;
  progress_.message("cluster: driver," + state_.nodes + (own ? " (processes on loopback)" : ""));
}

void training::make_model() {
  pipeline_ = std::make_unique<pipeline>(*driver_, nodes_->peers(*driver_), state_.shape, state_.how);
  pipeline_->optimiser().expect_room(folder_.checkpoint(), node_folder());
  if (options_.verify_steps > 0) pipeline_->expect_one_thread();
  if (options_.resume) {
    pipeline_->optimiser().load(folder_.checkpoint());
    end_.saved(state_.step);
  }
}

void training::measure_one_process() {
  progress_.message("measuring one process with libtorch's own engine for " + fixed(options_.single_process_seconds, 1) +
                    " s, half of them now, the rest in turns with the cluster ...");
  const auto threads = static_cast<int>(std::min<std::int64_t>(state_.stages, at::get_num_threads()));
  single_process_.begin(state_, data_->windows, threads);
  if (stopped()) return;
  const auto speed = single_process_.speed();
  progress_.message("one process: " + grouped(speed.with_one_thread) + " tokens/s with one thread, " +
                    grouped(speed.with_all_threads) + " with " + std::to_string(threads));
}

void training::verified_steps() {
  for (std::int64_t i = 0; i < options_.verify_steps && !ended(); ++i) {
    copy_parameters(pipeline_->parameters(), *replica_);
    one_step(true);
  }
  if (verification_.steps() > 0) progress_.message(verification_.text());
}

void training::one_step(bool verified) {
  const auto begin = clock::now();
  const auto begin_ns = now_ns();
  const auto rate = state_.how.rate_at(state_.step, state_.fraction());
  const auto windows = data_->windows.training_batch(state_.how.seed, state_.step, state_.how.batch);
  const auto result = pipeline_->train_step(windows, rate, verified);
  if (verified) verification_.check(*replica_, windows, pipeline_->cuts(), state_.step + 1, nodes_->names(), result.gradients);
  if (!std::isfinite(result.loss))
    throw std::runtime_error("step " + std::to_string(state_.step + 1) + ": expected a finite loss, but it is " +
                             fixed(result.loss, 3) + "; try a smaller --learning-rate");
  driver_->trace("step " + std::to_string(state_.step + 1), "steps", begin_ns, now_ns());
  const auto seconds = seconds_since(begin);
  if (!verified) clock_.note_step(seconds);
  ++state_.step;
  state_.seconds = clock_.seconds();
  metrics_->add({state_.step, result.loss, rate, result.gradient_norm, tokens_per_step() / seconds, state_.seconds});
  report(result.loss, seconds);
}

void training::report(double loss, double step_seconds) {
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

void training::validate() { metrics_->add_validation(state_.step, pipeline_->evaluate(data_->validation), state_.seconds); }

void training::save() {
  if (end_.is_saved(state_.step)) return;
  pipeline_->optimiser().save(folder_.checkpoint(), state_.to_attributes(), node_folder());
  end_.saved(state_.step);
}

void training::steps() {
  clock_.start(state_.seconds);
  verified_steps();
  for (std::int64_t done = 0; !ended(); ++done) {
    driver_->set_profiling(options_.trace && done < options_.profile_steps);
    one_step();
    if (state_.step % options_.validate_every == 0 && !ended()) validate();
    if (state_.step % options_.checkpoint_every == 0 && !ended()) save();
    const auto turn_begun = clock::now();
    if (!ended() && single_process_.run_due(state_.fraction())) clock_.leave_out(clock::now() - turn_begun);
  }
  progress_.finish();
}

/// Generates characters from the trained model. Returns nothing if a stop came first.
std::optional<std::string> training::sample() {
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

/// Saves and validates the trained model, and writes the files of the run. Returns false if a stop came before the files.
bool training::finish() {
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

void training::write_files(double validation_loss, const std::string& sample) {
  write_whole_file(folder_.chart(), loss_chart(*metrics_, data_->trigram));
  if (options_.trace) write_whole_file(folder_.trace(), driver_->collect_trace(nodes_->names()));
  run_summary summary;
  summary.validation_loss = validation_loss;
  summary.trigram_loss = data_->trigram;
  summary.tokens_per_second = clock_.seconds_per_step() > 0 ? tokens_per_step() / clock_.seconds_per_step() : 0;
  summary.single_process = single_process_.speed();
  summary.verified_steps = verification_.steps();
  summary.verified_parameters = verification_.parameters();
  summary.seconds = seconds_since(begun_);
  write_whole_file(folder_.summary(), summary.to_json(state_));
  std::vector<std::string> files{"summary.json", "metrics.jsonl", "loss.svg", "checkpoint/"};
  if (options_.trace) files.insert(files.end() - 1, "trace.json");
  for (const auto& line : summary.lines(state_, sample, {folder_.path().string(), files, generate_command(options_)}))
    progress_.message(line);
}

int training::interrupted() {
  progress_.finish();
  if (pipeline_ && state_.step > 0) save();
  end_.tell_stop(progress_, state_.step);
  return 128 + stop_.number();
}

void training::rethrow_with_node(const std::exception& failure) {
  end_.disarm();
  progress_.finish();
  const auto lost = nodes_ ? nodes_->lost(std::chrono::milliseconds(150)) : std::nullopt;
  std::string text = lost ? "lost node " + *lost : std::string(failure.what());
  text += lost || state_.step > 0 ? " (at step " + std::to_string(state_.step) + ")" : "";
  text += end_.saved_text();
  if (nodes_) nodes_->stop();
  throw std::runtime_error(text);
}

int training::run() {
  prepare();
  end_.allow_time();
  try {
    start_nodes();
    if (!stopped()) make_model();
    if (!stopped()) open_folder();
    if (!stopped() && single_process_.measures()) measure_one_process();
    at::set_num_threads(1);
    if (!stopped()) steps();
    const auto status = !stopped() && finish() ? 0 : interrupted();
    pipeline_.reset();
    nodes_->stop();
    driver_->stop();
    end_.disarm();
    return status;
  } catch (const std::exception& failure) {
    rethrow_with_node(failure);
  }
}

}  // namespace

int train(const train_options& options, const stop_signal& stop) { return training{options, stop}.run(); }

}  // namespace troupe::apps::charlm
