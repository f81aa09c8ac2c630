// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/stage_module.hpp"

#include <optional>
#include <stdexcept>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <troupe/devices/device_map.hpp>

namespace troupe::apps::charlm {

namespace {

named_tensors listed(const torch::OrderedDict<std::string, at::Tensor>& from) {
  named_tensors all;
  for (const auto& each : from) all.emplace_back(each.key(), each.value());
  return all;
}

class stage_module : public module {
 public:
  stage_module(std::shared_ptr<stage> of, stage_position position) : stage_(std::move(of)), position_(position) {}

  call_reply call(const std::string& method, call_arguments& arguments) override {
    if (method == "threads") return {{}, {{"threads", static_cast<std::int64_t>(at::get_num_threads())}}};
    if (method == "follow") {
      next_ = remote_module::accept(arguments.here, get<std::string>(arguments.values, "next"));
      return {};
    }
    if (method == "forward" || method == "evaluate") return run(method, arguments);
    throw std::runtime_error(std::string(stage_type) + " has no method '" + method +
                             "'; it has follow, forward, evaluate and threads");
  }

  named_tensors parameters() override { return parameters_of(*stage_); }
  named_tensors buffers() override { return buffers_of(*stage_); }

 private:
  call_reply run(const std::string& method, call_arguments& arguments) {
    if (arguments.tensors.size() != 2)
      throw std::runtime_error(std::string(stage_type) + "." + method +
                               " expected two tensors, the input and the targets, but got " +
                               std::to_string(arguments.tensors.size()));
    const auto last = position_.index + 1 == position_.count;
    if (!last && !next_)
      throw std::runtime_error(std::string(stage_type) + "." + method + ": stage " + std::to_string(position_.index + 1) +
                               " of " + std::to_string(position_.count) + " does not know the next stage; call follow first");
    const at::AutoGradMode graph{method == "forward"};
    const auto output = stage_->forward(arguments.tensors[0]);
    const auto& targets = arguments.tensors[1];
    if (!last) return next_->call(method, {output, targets}, arguments.values).get();
    return {{character_loss(output, targets, get<double>(arguments.values, "share")).cpu()}};
  }

  std::shared_ptr<stage> stage_;
  stage_position position_;
  std::optional<remote_module> next_;
};

}  // namespace

std::shared_ptr<module> make_stage_module(std::shared_ptr<stage> of, stage_position position) {
  return std::make_shared<stage_module>(std::move(of), position);
}

attributes stage_attributes(const model_shape& shape, stage_position position, std::uint64_t seed, const std::string& device) {
  auto values = shape.to_attributes();
  values["stage"] = position.index;
  values["stages"] = position.count;
  values["seed"] = static_cast<std::int64_t>(seed);
  values["device"] = device;
  return values;
}

void add_stage_type(node& here) {
  add_module_type(here, stage_type, [](const attributes& values) -> std::shared_ptr<module> {
    const stage_position position{get<std::int64_t>(values, "stage"), get<std::int64_t>(values, "stages")};
    const auto seed = static_cast<std::uint64_t>(get<std::int64_t>(values, "seed"));
    const auto device = devices::usable_device(get<std::string>(values, "device"));
    return make_stage_module(std::make_shared<stage>(model_shape::from_attributes(values), position, seed, device), position);
  });
}

named_tensors parameters_of(const stage& of) { return listed(of.named_parameters()); }

named_tensors buffers_of(const stage& of) { return listed(of.named_buffers()); }

}  // namespace troupe::apps::charlm
