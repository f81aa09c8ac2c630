// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/stage_module.hpp"

#include <stdexcept>

#include <ATen/Parallel.h>
#include <torch/torch.h>

namespace troupe::apps::charlm {

namespace {

named_tensors listed(const torch::OrderedDict<std::string, at::Tensor>& from) {
  named_tensors all;
  for (const auto& each : from) all.emplace_back(each.key(), each.value());
  return all;
}

class stage_module : public module {
 public:
  explicit stage_module(std::shared_ptr<stage> of) : stage_(std::move(of)) {}

  call_reply call(const std::string& method, call_arguments& arguments) override {
    if (method == "threads") return {{}, {{"threads", static_cast<std::int64_t>(at::get_num_threads())}}};
    if (method != "forward" && method != "evaluate")
      throw std::runtime_error(std::string(stage_type) + " has no method '" + method +
                               "'; it has forward, evaluate and threads");
    if (arguments.tensors.size() != 1)
      throw std::runtime_error(std::string(stage_type) + "." + method + " expected one tensor, but got " +
                               std::to_string(arguments.tensors.size()));
    const at::AutoGradMode graph{method == "forward"};
    return {{stage_->forward(arguments.tensors[0])}};
  }

  named_tensors parameters() override { return parameters_of(*stage_); }
  named_tensors buffers() override { return buffers_of(*stage_); }

 private:
  std::shared_ptr<stage> stage_;
};

}  // namespace

attributes stage_attributes(const model_shape& shape, stage_position position, std::uint64_t seed) {
  auto values = shape.to_attributes();
  values["stage"] = position.index;
  values["stages"] = position.count;
  values["seed"] = static_cast<std::int64_t>(seed);
  return values;
}

void add_stage_type(node& here) {
  add_module_type(here, stage_type, [](const attributes& values) -> std::shared_ptr<module> {
    const stage_position position{get<std::int64_t>(values, "stage"), get<std::int64_t>(values, "stages")};
    const auto seed = static_cast<std::uint64_t>(get<std::int64_t>(values, "seed"));
    return std::make_shared<stage_module>(std::make_shared<stage>(model_shape::from_attributes(values), position, seed));
  });
}

named_tensors parameters_of(const stage& of) { return listed(of.named_parameters()); }

named_tensors buffers_of(const stage& of) { return listed(of.named_buffers()); }

}  // namespace troupe::apps::charlm
