// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/run_state.hpp"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include <troupe/actors/objects/checkpoint.hpp>

namespace troupe::apps::charlm {

namespace {

constexpr const char* format = "charlm 1";

/// Calls `visit` with the name and the value of each field that a checkpoint stores unchanged.
template <class State, class Visit>
void for_each_field(State& of, const Visit& visit) {
  visit("stages", of.stages);
  visit("nodes", of.nodes);
  visit("batch", of.how.batch);
  visit("micro_batches", of.how.micro_batches);
  visit("learning_rate", of.how.learning_rate);
  visit("warmup_steps", of.how.warmup_steps);
  visit("final_rate", of.how.final_rate);
  visit("weight_decay", of.how.weight_decay);
  visit("beta1", of.how.beta1);
  visit("beta2", of.how.beta2);
  visit("clip_norm", of.how.clip_norm);
  visit("text_origin", of.text_origin);
  visit("text_fingerprint", of.text_fingerprint);
  visit("characters", of.characters);
  visit("step", of.step);
  visit("seconds", of.seconds);
  visit("planned_seconds", of.planned_seconds);
  visit("planned_steps", of.planned_steps);
}

}  // namespace

attributes run_state::to_attributes() const {
  auto values = shape.to_attributes();
  values["format"] = format;
  values["run"] = run;
  values["seed"] = static_cast<std::int64_t>(how.seed);
  values["wire"] = std::string(to_text(how.wire));
  values["schedule"] = std::string(to_text(how.order));
  for_each_field(*this, [&](const char* name, const auto& value) { values[name] = value; });
  return values;
}

run_state run_state::from_attributes(const attributes& values, const std::string& origin) {
  if (get_or<std::string>(values, "format", "another") != format)
    throw std::runtime_error("expected a checkpoint of troupe train in " + origin +
                             ", but it is of another program or version");
  run_state state;
  state.shape = model_shape::from_attributes(values);
  state.run = get_or<std::string>(values, "run", "");
  if (state.run.empty()) state.run = objects::new_save_id();  // an older checkpoint has no name of its run
  state.how.seed = static_cast<std::uint64_t>(get<std::int64_t>(values, "seed"));
  const auto wire = get_or<std::string>(values, "wire", "exact");  // checkpoints of older versions have none
  const auto format = wire_format_named(wire);
  if (!format)
    throw std::runtime_error("the checkpoint in " + origin + " has the wire format '" + wire + "', which is not known");
  state.how.wire = *format;
  const auto order = get_or<std::string>(values, "schedule", std::string(to_text(state.how.order)));  // older ones have none
  if (!schedule_named(order))
    throw std::runtime_error("the checkpoint in " + origin + " has the schedule '" + order + "', which is not known");
  state.how.order = *schedule_named(order);
  for_each_field(state, [&](const char* name, auto& value) { value = get<std::decay_t<decltype(value)>>(values, name); });
  return state;
}

run_state run_state::to_continue(const attributes& values, const std::string& origin) {
  auto state = from_attributes(values, origin);
  if (values.count("schedule") > 0) return state;
  // Before there were schedules, several micro-batches shared a context, which summed their gradients.
  const auto contexts = get_or<std::int64_t>(values, "contexts", 1);
  if (contexts < state.how.micro_batches)
    throw std::runtime_error("expected a checkpoint whose " + std::to_string(state.how.micro_batches) +
                             " micro-batches have contexts of their own, but an older version made the one in " + origin +
                             " with " + std::to_string(contexts) + (contexts == 1 ? " context" : " contexts") +
                             ", and a run that goes on would sum gradients in another order, to other bits; train anew in "
                             "another folder with --out, or go on with that version");
  return state;
}

double run_state::fraction() const {
  const auto fraction = planned_steps > 0     ? static_cast<double>(step) / static_cast<double>(planned_steps)
                        : planned_seconds > 0 ? seconds / planned_seconds
                                              : 1.0;
  return std::clamp(fraction, 0.0, 1.0);
}

}  // namespace troupe::apps::charlm
