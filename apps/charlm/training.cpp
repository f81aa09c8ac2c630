// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/training.hpp"

#include <poll.h>
#include <unistd.h>

#include <atomic>
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
#include "apps/charlm/run_folder.hpp"
#include "apps/charlm/run_state.hpp"
#include "apps/charlm/single_process.hpp"
#include "apps/charlm/summary.hpp"
#include "apps/charlm/training_plan.hpp"
#include "apps/charlm/trigram.hpp"
#include "apps/last_exit.hpp"

namespace troupe::apps::charlm {

namespace {

using clock = std::chrono::steady_clock;

constexpr auto time_to_save =
  std::chrono::milliseconds(1200);  // after a stop: for the step under way, the checkpoint and the end
constexpr auto time_to_leave = std::chrono::milliseconds(150);  // for the stages when that was not enough

constexpr int turns_of_one_process = 4;  // after the first

std::int64_t now_ns() { return std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now().time_since_epoch()).count(); }

/// To stdout, past what another thread may be printing; not at all when nobody reads.
void print_at_once(const std::string& line) {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0) [[maybe_unused]]
    const auto written = ::write(STDOUT_FILENO, line.data(), line.size());
}

/// One run.
class training {
 public:
  training(const train_options& options, const stop_signal& stop)
      : options_(options), stop_(stop), progress_(progress::on_stdout()), folder_(options.out) {
    // Until nodes are started nothing is lost by leaving at once.
    last_exit_.emplace(stop, std::chrono::milliseconds(0), [this] { leave(); });
  }

  int run();

 private:
  void prepare();
  void start_nodes();
  void make_model();
  void open_folder();
  void measure_one_process();
  void turn_of_one_process();
  void verified_steps();
  void steps();
  void one_step(bool verified = false);
  void verify(const batch& windows, const std::vector<named_tensors>& came);
  void validate();
  void save();
  bool finish();
  std::optional<std::string> sample();
  void write_files(double validation_loss, const std::string& sample);
  bool stopped() const { return stop_.requested(); }
  bool ended() const { return stop_.requested() || state_.finished(); }
  int interrupted();
  std::string saved_text() const;
  void leave() noexcept;
  [[noreturn]] void rethrow_with_node(const std::exception& failure);

  const train_options& options_;
  const stop_signal& stop_;
  clock::time_point begun_ = clock::now();
  progress progress_;
  run_folder folder_;
  run_state state_;
  std::unique_ptr<vocabulary> vocabulary_;
  std::unique_ptr<corpus> corpus_;
  std::unique_ptr<metrics> metrics_;
  batch validation_;
  double trigram_ = 0;
  std::unique_ptr<single_process> single_process_;
  double turn_every_ = 0;  // fraction of the training
  double next_turn_ = 0;
  std::unique_ptr<node> driver_;
  std::unique_ptr<stage_nodes> nodes_;
  std::unique_ptr<pipeline> pipeline_;
  std::unique_ptr<whole_model> replica_;
  std::atomic<std::int64_t> saved_step_{-1};  // of the checkpoint in the folder that this run loaded or saved
  std::int64_t verified_steps_ = 0;
  std::int64_t verified_parameters_ = 0;
  std::int64_t timed_steps_ = 0;
  double timed_seconds_ = 0;
  double recent_loss_ = 0;
  double seconds_before_ = 0;  // of a run that is continued
  clock::time_point training_begun_;
  std::atomic<bool> trained_{false};  // and saved
  std::atomic<bool> stop_is_told_{false};
  std::atomic<stage_nodes*> started_{nullptr};
  std::optional<last_exit> last_exit_;  // the last member: its thread uses the others
};

void training::prepare() {
  if (options_.resume && !folder_.has_checkpoint())
    throw std::runtime_error("expected a checkpoint to continue from in " + folder_.checkpoint() +
                             ", but there is none; leave --resume out to start a run, or name its folder with --out");
  state_ = options_.resume ? continued_state(options_, folder_.checkpoint()) : planned_state(options_);
  const auto source = text::read(state_.text_origin);
  vocabulary_ = std::make_unique<vocabulary>(vocabulary::of(source.characters));
  if (options_.resume) {
    if (source.fingerprint() != state_.text_fingerprint)
      throw std::runtime_error("the checkpoint in " + folder_.checkpoint() + " is of another text (fingerprint " +
                               state_.text_fingerprint + ") than " + state_.text_origin + " (" + source.fingerprint() +
                               "); name the text it was trained on with --data, or start anew in another folder with --out");
    if (state_.finished())
      throw std::runtime_error("the run in " + folder_.path().string() + " is finished (" + std::to_string(state_.step) +
                               " steps); give more --steps or --seconds than before to train on");
  }
  state_.text_fingerprint = source.fingerprint();
  state_.characters = to_utf8(vocabulary_->characters());
  state_.shape.vocabulary = vocabulary_->size();
  state_.shape.check();
  state_.how.check();
  if (state_.stages < 1 || state_.stages > state_.shape.blocks)
    throw std::runtime_error("--stages is expected to be 1 to " + std::to_string(state_.shape.blocks) +
                             " (the blocks), but is " + std::to_string(state_.stages));
  corpus_ = std::make_unique<corpus>(source, *vocabulary_, state_.shape.context);
  validation_ = corpus_->validation_windows();
  trigram_ = trigram_loss(*corpus_, vocabulary_->size());
  replica_ = std::make_unique<whole_model>(state_.shape, state_.stages, state_.how.seed);
  progress_.message("text: " + grouped(static_cast<double>(source.characters.size())) + " characters, " +
                    std::to_string(vocabulary_->size()) + " different, from " + source.origin + "; a trigram model scores " +
                    fixed(trigram_, 3) + " nats per character");
  std::int64_t parameters = 0;
  for (const auto& each : replica_->parameters()) parameters += each.numel();
  progress_.message("model: " + state_.shape.describe() + "; " + grouped(static_cast<double>(parameters)) + " parameters");
  // A checkpoint holds each parameter and two of AdamW's for it; there are two while one is saved.
  folder_.expect_room(static_cast<std::uintmax_t>(parameters) * sizeof(float) * 3 * 2 + 16'000'000);
}

/// The folder is this run's from here on.
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
  mine.port = options_.port;
  mine.trace = options_.trace;
  mine.deadline = std::chrono::milliseconds(std::llround(options_.deadline * 1000));
  driver_ = std::make_unique<node>(mine);
  add_charlm_modules(*driver_);
  const auto own = options_.cluster.empty();
  nodes_ = std::make_unique<stage_nodes>(own ? stage_nodes::start(*driver_, static_cast<std::size_t>(state_.stages), stop_)
                                             : stage_nodes::join(*driver_, options_.cluster));
  started_ = nodes_.get();
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
  if (options_.verify_steps > 0) pipeline_->expect_one_thread();
  if (options_.resume) {
    pipeline_->optimiser().load(folder_.checkpoint());
    saved_step_ = state_.step;
  }
}

void training::measure_one_process() {
  progress_.message("measuring one process with libtorch's own engine for " + fixed(options_.single_process_seconds, 1) +
                    " s, half of them now, the rest in turns with the cluster ...");
  const auto threads = static_cast<int>(std::min<std::int64_t>(state_.stages, at::get_num_threads()));
  single_process_ = std::make_unique<single_process>(state_.shape, state_.how, *corpus_);
  single_process_->compare(threads, options_.single_process_seconds / 2, [this] { return stopped(); });
  const auto speed = single_process_->speed();
  turn_every_ = (1 - state_.fraction()) / (turns_of_one_process + 1);
  next_turn_ = state_.fraction() + turn_every_;
  if (!stopped())
    progress_.message("one process: " + grouped(speed.with_one_thread) + " tokens/s with one thread, " +
                      grouped(speed.with_all_threads) + " with " + std::to_string(threads));
}

/// The machine may be faster or slower by now.
void training::turn_of_one_process() {
  if (!single_process_ || ended() || state_.fraction() < next_turn_) return;
  while (next_turn_ <= state_.fraction()) next_turn_ += turn_every_;
  const auto begin = clock::now();
  single_process_->train(options_.single_process_seconds / 2 / turns_of_one_process, [this] { return stopped(); });
  training_begun_ += clock::now() - begin;  // this was no training
}

void training::verify(const batch& windows, const std::vector<named_tensors>& came) {
  const auto expected = single_process_gradients(*replica_, windows, pipeline_->cuts());
  verified_parameters_ = 0;
  for (std::size_t s = 0; s < came.size(); ++s) {
    if (const auto text = first_difference(came[s], expected[s]))
      throw std::runtime_error("step " + std::to_string(state_.step + 1) + ", " + nodes_->names()[s] + ": " + *text);
    verified_parameters_ += static_cast<std::int64_t>(expected[s].size());
  }
  ++verified_steps_;
}

void training::verified_steps() {
  for (std::int64_t i = 0; i < options_.verify_steps && !ended(); ++i) {
    copy_parameters(pipeline_->parameters(), *replica_);
    one_step(true);
  }
  if (verified_steps_ > 0)
    progress_.message("verified: in " + std::to_string(verified_steps_) + (verified_steps_ == 1 ? " step" : " steps") +
                      " the gradients of all " + std::to_string(verified_parameters_) +
                      " parameters have the bits that libtorch's own engine computes in one process");
}

void training::one_step(bool verified) {
  const auto begin = clock::now();
  const auto begin_ns = now_ns();
  const auto rate = state_.how.rate_at(state_.step, state_.fraction());
  const auto windows = corpus_->training_batch(state_.how.seed, state_.step, state_.how.batch);
  const auto result = pipeline_->train_step(windows, rate, verified);
  if (verified) verify(windows, result.gradients);
  if (!std::isfinite(result.loss))
    throw std::runtime_error("step " + std::to_string(state_.step + 1) + ": expected a finite loss, but it is " +
                             fixed(result.loss, 3) + "; try a smaller --learning-rate");
  driver_->trace("step " + std::to_string(state_.step + 1), "steps", begin_ns, now_ns());
  const auto seconds = seconds_since(begin);
  const auto tokens = static_cast<double>(state_.how.batch * state_.shape.context);
  if (!verified) ++timed_steps_, timed_seconds_ += seconds;
  ++state_.step;
  state_.seconds = seconds_before_ + seconds_since(training_begun_);
  recent_loss_ = recent_loss_ == 0 ? result.loss : 0.9 * recent_loss_ + 0.1 * result.loss;
  metrics_->add({state_.step, result.loss, rate, result.gradient_norm, tokens / seconds, state_.seconds});

  progress_report now;
  now.step = state_.step;
  now.fraction = state_.fraction();
  now.loss = recent_loss_;
  if (!metrics_->validation_losses().empty()) now.validation_loss = metrics_->validation_losses().back().second;
  now.tokens_per_second = timed_steps_ > 0 ? static_cast<double>(timed_steps_) * tokens / timed_seconds_ : tokens / seconds;
  now.seconds_left = state_.planned_steps > 0
                       ? static_cast<double>(state_.planned_steps - state_.step) *
                           (timed_steps_ > 0 ? timed_seconds_ / static_cast<double>(timed_steps_) : seconds)
                       : state_.planned_seconds - state_.seconds;
  progress_.report(now);
}

void training::validate() { metrics_->add_validation(state_.step, pipeline_->evaluate(validation_), state_.seconds); }

void training::save() {
  if (saved_step_ == state_.step) return;
  pipeline_->optimiser().save(folder_.checkpoint(), state_.to_attributes());
  saved_step_ = state_.step;
}

void training::steps() {
  training_begun_ = clock::now();
  seconds_before_ = state_.seconds;
  verified_steps();
  for (std::int64_t done = 0; !ended(); ++done) {
    driver_->set_profiling(options_.trace && done < options_.profile_steps);
    one_step();
    if (state_.step % options_.validate_every == 0 && !ended()) validate();
    if (state_.step % options_.checkpoint_every == 0 && !ended()) save();
    turn_of_one_process();
  }
  progress_.finish();
}

/// Characters from the trained model; nothing when a stop came first.
std::optional<std::string> training::sample() {
  copy_parameters(pipeline_->parameters(), *replica_);
  generation_settings drawn;
  drawn.length = options_.sample;
  drawn.seed = state_.how.seed;
  const auto first = vocabulary_->characters().find(U'\n') != std::u32string::npos ? U'\n' : vocabulary_->characters()[0];
  drawn.prompt = {first};
  const auto text = generate(*replica_, state_.shape, *vocabulary_, drawn, [this](char32_t) { return !stopped(); });
  if (stopped()) return {};
  return to_utf8(text);
}

/// False when a stop came first.
bool training::finish() {
  save();
  trained_ = true;
  if (stopped()) return false;
  const auto validation_loss = pipeline_->evaluate(validation_);
  if (metrics_->validation_losses().empty() || metrics_->validation_losses().back().first != static_cast<double>(state_.step))
    metrics_->add_validation(state_.step, validation_loss, state_.seconds);
  const auto text = stopped() ? std::nullopt : sample();
  if (!text) return false;
  write_files(validation_loss, *text);
  return true;
}

void training::write_files(double validation_loss, const std::string& sample) {
  write_whole_file(folder_.chart(), loss_chart(*metrics_, trigram_));
  if (options_.trace) write_whole_file(folder_.trace(), driver_->collect_trace(nodes_->names()));
  const auto tokens = static_cast<double>(timed_steps_ * state_.how.batch * state_.shape.context);
  run_summary summary;
  summary.validation_loss = validation_loss;
  summary.trigram_loss = trigram_;
  summary.tokens_per_second = timed_seconds_ > 0 ? tokens / timed_seconds_ : 0;
  if (single_process_) summary.single_process = single_process_->speed();
  summary.verified_steps = verified_steps_;
  summary.verified_parameters = verified_parameters_;
  summary.seconds = seconds_since(begun_);
  write_whole_file(folder_.summary(), summary.to_json(state_));
  std::vector<std::string> files{"summary.json", "metrics.jsonl", "loss.svg", "checkpoint/"};
  if (options_.trace) files.insert(files.end() - 1, "trace.json");
  for (const auto& line : summary.lines(state_, sample, {folder_.path().string(), files, generate_command(options_)}))
    progress_.message(line);
}

/// "; the checkpoint of step 20 ...", or nothing where there is none of this run.
std::string training::saved_text() const {
  const auto step = saved_step_.load();
  if (step < 0) return "";
  return "; the checkpoint of step " + std::to_string(step) + " in " + folder_.checkpoint() + " is whole, " +
         (trained_ ? "text from it: " + generate_command(options_) : "continue with: " + continue_command(options_));
}

int training::interrupted() {
  progress_.finish();
  if (pipeline_ && state_.step > 0) save();
  if (!stop_is_told_.exchange(true))
    progress_.message("stopped by a signal at step " + std::to_string(state_.step) + saved_text());
  return 128 + stop_.number();
}

/// On a thread of its own while the run is busy with something: the process ends with it.
void training::leave() noexcept {
  if (!stop_is_told_.exchange(true)) {
    const auto* doing =
      started_ == nullptr ? "stopped by a signal" : "stopped by a signal in the middle of work that takes longer";
    print_at_once((isatty(STDOUT_FILENO) == 1 ? "\n" : "") + std::string(doing) + saved_text() + "\n");
  }
  if (auto* nodes = started_.load()) nodes->stop(time_to_leave);
  folder_.abandon();
}

void training::rethrow_with_node(const std::exception& failure) {
  last_exit_->disarm();
  progress_.finish();
  const auto lost = nodes_ ? nodes_->lost(std::chrono::milliseconds(150)) : std::nullopt;
  std::string text = lost ? "lost node " + *lost : std::string(failure.what());
  text += lost || state_.step > 0 ? " (at step " + std::to_string(state_.step) + ")" : "";
  text += saved_text();
  if (nodes_) nodes_->stop();
  throw std::runtime_error(text);
}

int training::run() {
  prepare();
  last_exit_->set_patience(time_to_save);
  try {
    start_nodes();
    if (!stopped()) make_model();
    if (!stopped()) open_folder();
    if (!stopped() && options_.single_process_seconds > 0) measure_one_process();
    at::set_num_threads(1);
    if (!stopped()) steps();
    const auto status = !stopped() && finish() ? 0 : interrupted();
    pipeline_.reset();
    nodes_->stop();
    driver_->stop();
    last_exit_->disarm();
    return status;
  } catch (const std::exception& failure) {
    rethrow_with_node(failure);
  }
}

}  // namespace

int train(const train_options& options, const stop_signal& stop) { return training{options, stop}.run(); }

}  // namespace troupe::apps::charlm
