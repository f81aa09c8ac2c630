// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/train_test.cpp, tests/hosts/training_test.cpp
#include "apps/charlm/training_run.hpp"

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include <ATen/Parallel.h>

#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/devices/device_map.hpp>
#include <troupe/messages/plain_text.hpp>

#include "apps/charlm/figures.hpp"
#include "apps/command_line.hpp"

namespace troupe::apps::charlm {

namespace {

/// The state with which a new run begins, from its options. The text is not read here.
run_state planned_state(const train_options& options) {
  run_state state;
  state.run = objects::new_save_id();
  state.shape = options.shape;
  state.how = options.how;
  state.how.wire = wire_format_named(options.wire).value_or(wire_format::exact);
  state.how.order = schedule_named(options.schedule).value_or(state.how.order);
  state.stages = options.stages;
  state.text_origin = options.data;
  state.planned_steps = options.steps;
  state.planned_seconds = options.steps > 0 ? 0 : options.seconds;
  return state;
}

/// The state in a checkpoint. Options that were given have to agree with the checkpoint, except the length of the training. If
/// an option does not agree, throws std::runtime_error that names the option.
run_state continued_state(const train_options& options, const std::string& folder) {
  auto state = run_state::to_continue(objects::read_manifest(folder).about, folder);
  const auto agree = [&](const char* name, auto given, auto kept) {
    if (options.given.count(name) == 0 || given == kept) return;
    classic_ostringstream text;
    text << "the checkpoint in " << folder << " is of another model or training: it has --" << name << ' ' << kept << ", but "
         << given << " is asked for; leave the option out, or start anew in another folder with --out";
    throw std::runtime_error(text.str());
  };
  agree("blocks", options.shape.blocks, state.shape.blocks);
  agree("width", options.shape.width, state.shape.width);
  agree("heads", options.shape.heads, state.shape.heads);
  agree("context", options.shape.context, state.shape.context);
  agree("stages", options.stages, state.stages);
  agree("batch", options.how.batch, state.how.batch);
  agree("micro-batches", options.how.micro_batches, state.how.micro_batches);
  agree("learning-rate", options.how.learning_rate, state.how.learning_rate);
  agree("clip-norm", options.how.clip_norm, state.how.clip_norm);
  agree("wire", options.wire, std::string(to_text(state.how.wire)));
  agree("seed", options.how.seed, state.how.seed);
  if (options.given.count("data") != 0) state.text_origin = options.data;
  if (options.given.count("schedule") != 0) state.how.order = schedule_named(options.schedule).value_or(state.how.order);
  if (options.given.count("steps") != 0)
    state.planned_steps = options.steps, state.planned_seconds = 0;
  else if (options.given.count("seconds") != 0)
    state.planned_steps = 0, state.planned_seconds = options.seconds;
  return state;
}

}  // namespace

void training_run::prepare() {
  if (options_.resume && !folder_.has_checkpoint())
    throw std::runtime_error("expected a checkpoint to continue from in " + folder_.checkpoint() +
                             ", but there is none; leave --resume out to start a run, or name its folder with --out");
  state_ = options_.resume ? continued_state(options_, folder_.checkpoint()) : planned_state(options_);
  auto source = text::read(state_.text_origin, [this](const std::string& line) { progress_.message(line); });
  const auto fingerprint = source.fingerprint();
  if (options_.resume) {
    if (fingerprint != state_.text_fingerprint)
      throw std::runtime_error("the checkpoint in " + folder_.checkpoint() + " is of another text (fingerprint " +
                               state_.text_fingerprint + ") than " + state_.text_origin + " (" + fingerprint +
                               "); name the text it was trained on with --data, or start anew in another folder with --out");
    if (state_.finished())
      throw std::runtime_error("the run in " + folder_.path().string() + " has trained " + std::to_string(state_.step) +
                               " steps in " + fixed(state_.seconds, 1) + " s, which is all that was asked for; --steps or" +
                               " --seconds count from the beginning of the run: give more to train on");
  }
  state_.text_fingerprint = fingerprint;
  auto words = vocabulary::of(source.bytes);
  state_.characters = to_utf8(words.characters());
  state_.shape.vocabulary = words.size();
  state_.shape.check();
  state_.how.check();
  if (state_.stages < 1 || state_.stages > state_.shape.blocks)
    throw std::runtime_error("--stages is expected to be 1 to " + std::to_string(state_.shape.blocks) +
                             " (the blocks), but is " + std::to_string(state_.stages));
  const auto origin = source.origin;
  if (source.bytes.size() >= text::many_bytes) progress_.message("counting which characters follow each other ...");
  data_ = std::make_unique<training_data>(std::move(source), std::move(words), state_.shape.context);
  device_ = devices::usable_device(options_.device);
  replica_ = std::make_unique<whole_model>(state_.shape, state_.stages, state_.how.seed, device_);
  progress_.message("text: " + grouped(static_cast<double>(data_->windows.size())) + " characters, " +
                    std::to_string(data_->words.size()) + " different, from " + origin + "; a trigram model scores " +
                    fixed(data_->trigram, 3) + " nats per character");
  std::int64_t parameters = 0;
  for (const auto& each : replica_->parameters()) parameters += each.numel();
  progress_.message("model: " + state_.shape.describe() + "; " + grouped(static_cast<double>(parameters)) + " parameters");
  // A checkpoint holds each parameter and two values of AdamW for each. While a checkpoint is saved, the folder has two
  // checkpoints.
  const auto checkpoint_bytes =
    options_.node_checkpoints.empty() ? static_cast<std::uintmax_t>(parameters) * sizeof(float) * 3 * 2 : 0;
  folder_.expect_disk_space(checkpoint_bytes + 16'000'000);
}

/// From here on the folder belongs to this run.
void training_run::open_folder() {
  if (options_.resume) {
    progress_.message("continuing the run in " + folder_.path().string() + " from step " + std::to_string(state_.step));
  } else if (options_.overwrite) {
    if (folder_.remove_run()) progress_.message("removed the run that was in " + folder_.path().string() + " (--overwrite)");
  } else if (const auto earlier = folder_.set_aside()) {
    progress_.message("the run that was in " + folder_.path().string() + " is now in " + *earlier);
  }
  metrics_ = std::make_unique<metrics>(folder_.metrics(), options_.resume ? state_.step : -1);
}

void training_run::start_driver() {
  auto mine = options_.driver;
  if (mine.name.empty()) mine.name = name_in_kit(mine);
  if (mine.name.empty()) mine.name = "driver";
  mine.trace = options_.trace;
  mine.deadline = std::chrono::milliseconds(std::llround(options_.deadline * 1000));
  driver_ = std::make_unique<node>(mine);
}

/// Starts the stages, or joins their nodes, by the time `until`. Does nothing if the nodes were met before.
void training_run::meet_stages(stage_nodes::clock::time_point until) {
  if (nodes_) return;
  auto met = std::make_unique<stage_nodes>(
    options_.starts_stages()   ? stage_nodes::start(*driver_, static_cast<std::size_t>(state_.stages), stop_,
                                                    {options_.node_checkpoints, device_.is_cuda()})
    : options_.cluster.empty() ? stage_nodes::join(*driver_, options_.join, options_.nodes, until)
                               : stage_nodes::join(*driver_, cluster_file::read(options_.cluster), until));
  if (!options_.join.empty() && options_.nodes.empty()) met->keep_those_for_stages(*driver_);
  const auto count = static_cast<std::int64_t>(met->names().size());
  if (!stopped() && count != state_.stages) {
    const auto text =
      "expected " + std::to_string(state_.stages) + " nodes in " +
      (options_.cluster.empty() ? "the cluster of " + options_.join : options_.cluster) + ", one for each stage, but " +
      std::to_string(count) + " are there" +
      (options_.cluster.empty()
         ? " (not counted: drivers of other runs, nodes without --load charlm); set --stages, or name nodes with --nodes"
         : "; set --stages");
    if (count < state_.stages && !options_.join.empty() && options_.nodes.empty()) throw error(errc::unknown_peer, text);
    throw std::runtime_error(text);
  }
  nodes_ = std::move(met);
  end_.set_stages(*nodes_);
  if (stopped()) return;
  state_.nodes = support::joined(nodes_->names(), ",");
  progress_.message("cluster: " + driver_->name() + "," + state_.nodes +
                    (options_.starts_stages() ? " (processes on loopback)" : ""));
}

void training_run::make_stages() {
  pipeline_ = std::make_unique<pipeline>(*driver_, nodes_->peers(*driver_), state_.shape, state_.how, options_.device);
  pipeline_->optimiser().expect_disk_space(folder_.checkpoint(), node_folder());
  if (options_.verify_steps > 0) pipeline_->expect_one_thread();
}

/// Makes the stages, as they were at the last checkpoint, or at the start if there is none. The first time, the folder is
/// opened too.
void training_run::get_ready(stage_nodes::clock::time_point until) {
  meet_stages(until);
  if (stopped()) return;
  if (has_begun()) state_ = saved_;
  make_stages();
  if (options_.resume || end_.is_saved(state_.step)) {
    pipeline_->optimiser().load(folder_.checkpoint());
    end_.saved(state_.step);
  }
  if (stopped()) return;
  if (has_begun()) {
    metrics_ = std::make_unique<metrics>(folder_.metrics(), state_.step);
    return;
  }
  open_folder();
  saved_ = state_;
  if (single_process_.measures()) measure_one_process();
  at::set_num_threads(1);
}

void training_run::measure_one_process() {
  progress_.message("measuring one process with libtorch's own engine for " + fixed(options_.single_process_seconds, 1) +
                    " s, half of them now, the rest in turns with the cluster ...");
  const auto threads = static_cast<int>(std::min<std::int64_t>(state_.stages, at::get_num_threads()));
  single_process_.begin(state_, data_->windows, threads, device_);
  if (stopped()) return;
  const auto speed = single_process_.speed();
  progress_.message("one process: " + grouped(speed.with_one_thread) + " tokens/s with one thread, " +
                    grouped(speed.with_all_threads) + " with " + std::to_string(threads));
}

}  // namespace troupe::apps::charlm
