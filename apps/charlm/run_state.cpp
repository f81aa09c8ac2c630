// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/run_state.hpp"

#include <algorithm>
#include <stdexcept>

#include <troupe/actors/objects/checkpoint.hpp>

namespace troupe::apps::charlm {

namespace {

constexpr const char* format = "charlm 1";

}  // namespace

attributes run_state::to_attributes() const {
  auto values = shape.to_attributes();
  const attributes more{
    {"format", format},
    {"run", run},
    {"stages", stages},
    {"nodes", nodes},
    {"seed", static_cast<std::int64_t>(how.seed)},
    {"batch", how.batch},
    {"micro_batches", how.micro_batches},
    {"contexts", how.contexts},
    {"learning_rate", how.learning_rate},
    {"warmup_steps", how.warmup_steps},
    {"final_rate", how.final_rate},
    {"weight_decay", how.weight_decay},
    {"beta1", how.beta1},
    {"beta2", how.beta2},
    {"clip_norm", how.clip_norm},
    {"wire", std::string(to_text(how.wire))},
    {"text_origin", text_origin},
    {"text_fingerprint", text_fingerprint},
    {"characters", characters},
    {"step", step},
    {"seconds", seconds},
    {"planned_seconds", planned_seconds},
    {"planned_steps", planned_steps},
  };
  values.insert(more.begin(), more.end());
  return values;
}

run_state run_state::from_attributes(const attributes& values, const std::string& origin) {
  if (get_or<std::string>(values, "format", "another") != format)
    throw std::runtime_error("expected a checkpoint of troupe train in " + origin +
                             ", but it is of another program or version");
  const auto whole = [&](const char* name) { return get<std::int64_t>(values, name); };
  const auto real = [&](const char* name) { return get<double>(values, name); };
  const auto words = [&](const char* name) { return get<std::string>(values, name); };
  run_state state;
  state.shape = model_shape::from_attributes(values);
  state.run = get_or<std::string>(values, "run", "");
  if (state.run.empty()) state.run = objects::new_save_id();  // of a checkpoint from before runs had names
  state.stages = whole("stages");
  state.nodes = words("nodes");
  state.how.seed = static_cast<std::uint64_t>(whole("seed"));
  state.how.batch = whole("batch");
  state.how.micro_batches = whole("micro_batches");
  state.how.contexts = whole("contexts");
  state.how.learning_rate = real("learning_rate");
  state.how.warmup_steps = whole("warmup_steps");
  state.how.final_rate = real("final_rate");
  state.how.weight_decay = real("weight_decay");
  state.how.beta1 = real("beta1");
  state.how.beta2 = real("beta2");
  state.how.clip_norm = real("clip_norm");
  const auto wire = get_or<std::string>(values, "wire", "exact");  // checkpoints of older versions have none
  const auto format = wire_format_named(wire);
  if (!format)
    throw std::runtime_error("the checkpoint in " + origin + " has the wire format '" + wire + "', which is not known");
  state.how.wire = *format;
  state.text_origin = words("text_origin");
  state.text_fingerprint = words("text_fingerprint");
  state.characters = words("characters");
  state.step = whole("step");
  state.seconds = real("seconds");
  state.planned_seconds = real("planned_seconds");
  state.planned_steps = whole("planned_steps");
  return state;
}

double run_state::fraction() const {
  const auto part = planned_steps > 0     ? static_cast<double>(step) / static_cast<double>(planned_steps)
                    : planned_seconds > 0 ? seconds / planned_seconds
                                          : 1.0;
  return std::clamp(part, 0.0, 1.0);
}

}  // namespace troupe::apps::charlm
