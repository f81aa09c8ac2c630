// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/stage_module.hpp"

#include <optional>
#include <stdexcept>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <troupe/devices/device_map.hpp>

#include "apps/charlm/split_backward.hpp"
#include "apps/charlm/stage_turns.hpp"

namespace troupe::apps::charlm {

namespace {

named_tensors listed(const torch::OrderedDict<std::string, at::Tensor>& from) {
  named_tensors all;
  for (const auto& each : from) all.emplace_back(each.key(), each.value());
  return all;
}

class stage_module : public module {
 public:
  stage_module(std::shared_ptr<stage> of, stage_position position, schedule order)
      : stage_(std::move(of)), position_(position), order_(order), turns_(std::make_shared<stage_turns>(order, position)) {}

  call_reply call(const std::string& method, call_arguments& arguments) override {
    if (method == "threads") return {{}, {{"threads", static_cast<std::int64_t>(at::get_num_threads())}}};
    if (method == "follow") {
      previous_ = remote_module::accept(arguments.here, get<std::string>(arguments.values, "previous"));
      return {};
    }
    if (method == "work") {
      const auto [times, most_held] = turns_->take();
      return {{},
              {{"forward", times.forward},
               {"backward", times.backward},
               {"weights", times.weights},
               {"span", times.span},
               {"most_held", most_held}}};
    }
    if (method == "forward" || method == "evaluate") return run(method, arguments);
    throw std::runtime_error(std::string(stage_type) + " has no method '" + method +
                             "'; it has follow, forward, evaluate, work and threads");
  }

  named_tensors parameters() override { return parameters_of(*stage_); }
  named_tensors buffers() override { return buffers_of(*stage_); }

 private:
  bool is_last() const { return position_.index + 1 == position_.count; }

  call_reply run(const std::string& method, call_arguments& arguments) {
    if (arguments.tensors.size() != (is_last() ? 2 : 1))
      throw std::runtime_error(std::string(stage_type) + "." + method + " expected " +
                               (is_last() ? "two tensors, the tokens and the targets" : "one tensor, the tokens") +
                               ", but got " + std::to_string(arguments.tensors.size()));
    if (position_.index > 0 && !previous_)
      throw std::runtime_error(std::string(stage_type) + "." + method + ": stage " + std::to_string(position_.index + 1) +
                               " of " + std::to_string(position_.count) +
                               " does not know the stage before it; call follow first");
    const at::AutoGradMode graph{method == "forward"};
    auto input = arguments.tensors[0];
    if (position_.index > 0) input = previous_->call(method, {input}, arguments.values).get().tensor(0);
    if (method == "evaluate" || order_ == schedule::dataflow) return {{output_of(input, arguments)}};
    const auto number = get<std::int64_t>(arguments.values, "micro_batch");
    const auto turns = std::make_shared<stage_turns::micro_batch>(turns_, number);
    turns->ask(stage_work::forward).get();
    split_backward backward(turns);
    const auto linear = [&](const auto& x, const auto& weight, const auto& bias) { return backward.linear(x, weight, bias); };
    auto output = output_of(input, arguments, order_ == schedule::zero_bubble ? linear_function(linear) : whole_linear,
                            [&](const auto& tensors) { return backward.enter(tensors); });
    output = backward.leave(output);
    turns->end(stage_work::forward);
    return {{output}};
  }

  /// The hidden values; of the last stage the loss.
  at::Tensor output_of(const at::Tensor& input, const call_arguments& arguments, const linear_function& linear = whole_linear,
                       const enter_function& enter = {}) {
    const auto output = stage_->forward(input, linear, enter);
    if (!is_last()) return output;
    return character_loss(output, arguments.tensors[1], get<double>(arguments.values, "share")).cpu();
  }

  std::shared_ptr<stage> stage_;
  stage_position position_;
  schedule order_;
  std::shared_ptr<stage_turns> turns_;
  std::optional<remote_module> previous_;
};

}  // namespace

std::shared_ptr<module> make_stage_module(std::shared_ptr<stage> of, stage_position position, schedule order) {
  return std::make_shared<stage_module>(std::move(of), position, order);
}

attributes stage_attributes(const model_shape& shape, stage_position position, std::uint64_t seed, const std::string& device,
                            schedule order) {
  auto values = shape.to_attributes();
  values["stage"] = position.index;
  values["stages"] = position.count;
  values["seed"] = static_cast<std::int64_t>(seed);
  values["device"] = device;
  values["schedule"] = std::string(to_text(order));
  return values;
}

void add_stage_type(node& here) {
  add_module_type(here, stage_type, [](const attributes& values) -> std::shared_ptr<module> {
    const stage_position position{get<std::int64_t>(values, "stage"), get<std::int64_t>(values, "stages")};
    const auto seed = static_cast<std::uint64_t>(get<std::int64_t>(values, "seed"));
    const auto device = devices::usable_device(get<std::string>(values, "device"));
    const auto name = get_or<std::string>(values, "schedule", "dataflow");
    const auto order = schedule_named(name);
    if (!order) throw std::runtime_error(std::string(stage_type) + " has no schedule '" + name + "'");
    return make_stage_module(std::make_shared<stage>(model_shape::from_attributes(values), position, seed, device), position,
                             *order);
  });
}

named_tensors parameters_of(const stage& of) { return listed(of.named_parameters()); }

named_tensors buffers_of(const stage& of) { return listed(of.named_buffers()); }

}  // namespace troupe::apps::charlm
