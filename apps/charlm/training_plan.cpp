// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/training_plan.hpp"

#include <stdexcept>

#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/messages/plain_text.hpp>

namespace troupe::apps::charlm {

run_state planned_state(const train_options& options) {
  run_state state;
  state.run = objects::new_save_id();
  state.shape = options.shape;
  state.how = options.how;
  state.how.wire = wire_format_named(options.wire).value_or(wire_format::exact);
  // Between hosts, gradients leave while activations still come only if each micro-batch has a context of its own.
  if (!options.starts_stages() && options.given.count("contexts") == 0) state.how.contexts = options.how.micro_batches;
  state.stages = options.stages;
  state.text_origin = options.data;
  state.planned_steps = options.steps;
  state.planned_seconds = options.steps > 0 ? 0 : options.seconds;
  return state;
}

run_state continued_state(const train_options& options, const std::string& folder) {
  auto state = run_state::from_attributes(objects::read_manifest(folder).about, folder);
  const auto agree = [&](const char* name, auto given, auto kept) {
    if (options.given.count(name) == 0 || given == kept) return;
    plain_stream text;
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
  agree("contexts", options.how.contexts, state.how.contexts);
  agree("learning-rate", options.how.learning_rate, state.how.learning_rate);
  agree("clip-norm", options.how.clip_norm, state.how.clip_norm);
  agree("wire", options.wire, std::string(to_text(state.how.wire)));
  agree("seed", options.how.seed, state.how.seed);
  if (options.given.count("data") != 0) state.text_origin = options.data;
  if (options.given.count("steps") != 0)
    state.planned_steps = options.steps, state.planned_seconds = 0;
  else if (options.given.count("seconds") != 0)
    state.planned_steps = 0, state.planned_seconds = options.seconds;
  return state;
}

}  // namespace troupe::apps::charlm
