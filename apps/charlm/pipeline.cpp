// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/pipeline.hpp"

#include <optional>

#include <ATen/ATen.h>

#include "apps/charlm/micro_batches.hpp"
#include "apps/charlm/stage_module.hpp"

namespace troupe::apps::charlm {

namespace {

std::vector<remote_module> make_stages(const std::vector<peer>& where, const model_shape& shape, std::uint64_t seed) {
  std::vector<remote_module> stages;
  const auto count = static_cast<std::int64_t>(where.size());
  for (std::int64_t i = 0; i < count; ++i)
    stages.push_back(where[static_cast<std::size_t>(i)].create(stage_type, stage_attributes(shape, {i, count}, seed)));
  return stages;
}

constexpr std::int64_t windows_a_call = 32;  // of an evaluation
constexpr std::size_t calls_at_once = 8;

}  // namespace

pipeline::pipeline(node& here, const std::vector<peer>& where, const model_shape& shape, const recipe& how)
    : here_(&here),
      how_(how),
      cuts_(micro_batch_sizes(how.batch, how.micro_batches)),
      stages_(make_stages(where, shape, how.seed)),
      optimizer_(here, {"adamw", how.optimizer_options()}, stages_) {}

/// Sends the inputs through all stages; `output` gets each one's result in order, while later ones are still under way.
void pipeline::run(const std::string& method, const std::vector<at::Tensor>& inputs,
                   const std::function<void(std::size_t, const at::Tensor&)>& output) const {
  const auto parts = inputs.size();
  const auto depth = stages_.size();
  // under_way[s][m] is micro-batch m in stage s. Each turn moves every micro-batch one stage on, the foremost first.
  std::vector<std::vector<future<call_reply>>> under_way(depth);
  for (const auto& input : inputs)
    under_way[0].push_back(stages_[0].call(method, {input}));
  for (std::size_t turn = 1; turn < parts + depth; ++turn)
    for (auto s = std::min(turn, depth); s >= 1; --s) {
      const auto m = turn - s;
      if (m >= parts)
        continue;
      const auto result = under_way[s - 1][m].get().tensors.at(0);
      if (s == depth)
        output(m, result);
      else
        under_way[s].push_back(stages_[s].call(method, {result}));
    }
}

step_result pipeline::train_step(const batch& windows, double learning_rate, const std::function<void(const context&)>& look) {
  const auto parts = cut(windows, cuts_);
  std::vector<at::Tensor> inputs;
  for (const auto& part : parts)
    inputs.push_back(part.windows.inputs);
  context pass{*here_};
  std::vector<at::Tensor> losses;
  run("forward", inputs, [&](std::size_t m, const at::Tensor& logits) {
    losses.push_back(character_loss(logits, parts[m].windows.targets, parts[m].share));
  });
  pass.backward(losses).get();
  if (look)
    look(pass);
  optimizer_.set_learning_rate(learning_rate);
  step_result result;
  result.gradient_norm = optimizer_.step(pass, how_.clip_norm).value_or(0);
  for (const auto& loss : losses)
    result.loss += loss.item<double>();
  return result;
}

double pipeline::evaluate(const batch& windows) {
  const at::NoGradGuard no_graph;
  const auto inputs = windows.inputs.split(windows_a_call);
  const auto targets = windows.targets.split(windows_a_call);
  double sum = 0;
  double characters = 0;
  for (std::size_t begin = 0; begin < inputs.size(); begin += calls_at_once) {
    const auto end = std::min(begin + calls_at_once, inputs.size());
    run("evaluate", {inputs.begin() + static_cast<std::ptrdiff_t>(begin), inputs.begin() + static_cast<std::ptrdiff_t>(end)},
        [&](std::size_t m, const at::Tensor& logits) {
          const auto count = targets[begin + m].ge(0).sum().item<double>();
          if (count == 0)
            return;
          sum += character_loss(logits, targets[begin + m]).item<double>() * count;
          characters += count;
        });
  }
  return sum / characters;
}

std::vector<named_tensors> pipeline::parameters() const {
  std::vector<named_tensors> all;
  for (const auto& each : stages_)
    all.push_back(each.parameters());
  return all;
}

std::vector<named_tensors> pipeline::gradients(const context& pass) const {
  std::vector<named_tensors> all;
  for (const auto& each : stages_)
    all.push_back(each.gradients(pass));
  return all;
}

}  // namespace troupe::apps::charlm
