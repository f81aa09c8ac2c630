// SPDX-License-Identifier: BSD-3-Clause
#include "known_order.hpp"

#include <memory>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/engine.h>

namespace troupe::bench {

namespace {

using torch::autograd::Node;

std::unordered_map<Node*, int> waiting_for(Node* root) {
  std::unordered_map<Node*, int> inputs{{root, 0}};
  std::vector<Node*> left{root};
  while (!left.empty()) {
    Node* const function = left.back();
    left.pop_back();
    for (const auto& next : function->next_edges()) {
      if (!next.is_valid()) continue;
      if (++inputs[next.function.get()] == 1) left.push_back(next.function.get());
    }
  }
  return inputs;
}

void add_to(at::Tensor& sum, at::Tensor part) {
  if (!part.defined()) return;
  if (!sum.defined())
    sum = std::move(part);
  else if (sum.use_count() == 1 && sum.storage().use_count() == 1 && sum.is_non_overlapping_and_dense())
    sum.add_(part);
  else
    sum = sum + part;
}

}  // namespace

known_order::known_order(const at::Tensor& loss) : loss_(loss) {
  auto inputs = waiting_for(loss.grad_fn().get());
  const auto later = [](const auto& a, const auto& b) { return a->sequence_nr() < b->sequence_nr(); };
  std::priority_queue<std::shared_ptr<Node>, std::vector<std::shared_ptr<Node>>, decltype(later)> ready(later);
  ready.push(loss.grad_fn());
  std::unordered_map<Node*, std::size_t> places;
  while (!ready.empty()) {
    const auto function = ready.top();
    ready.pop();
    places.emplace(function.get(), steps_.size());
    steps_.push_back({function, {}});
    for (const auto& next : function->next_edges())
      if (next.is_valid() && --inputs.at(next.function.get()) == 0) ready.push(next.function);
  }
  for (step& each : steps_) {
    for (const auto& next : each.function->next_edges()) {
      auto& output = each.outputs.emplace_back();
      if (next.is_valid()) output.push_back({places.at(next.function.get()), next.input_nr});
    }
  }
}

void known_order::run() const {
  const c10::AutoGradMode no_graph(false);
  std::vector<std::vector<at::Tensor>> gradients(steps_.size());
  gradients.front() = {at::ones_like(loss_)};
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    auto& inputs = gradients[i];
    inputs.resize(steps_[i].function->num_inputs());
    auto outputs = (*steps_[i].function)(std::move(inputs));
    torch::autograd::validate_outputs(steps_[i].function->next_edges(), outputs,
                                      [](const std::string& reason) { return reason; });
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      for (const edge& to : steps_[i].outputs[k]) {
        auto& of_target = gradients[to.target];
        if (of_target.size() <= to.input) of_target.resize(to.input + 1);
        add_to(of_target[to.input], std::move(outputs[k]));
      }
    }
  }
}

}  // namespace troupe::bench
