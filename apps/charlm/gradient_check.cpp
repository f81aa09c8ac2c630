// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/gradient_check.hpp"

#include <cstring>
#include <map>
#include <stdexcept>

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <troupe/messages/plain_text.hpp>

namespace troupe::apps::charlm {

namespace {

std::string shape_of(const at::Tensor& tensor) {
  classic_ostringstream out;
  if (!tensor.defined()) return "none";
  out << tensor.scalar_type() << ' ' << tensor.sizes();
  return out.str();
}

std::optional<std::string> differing_values(const std::string& name, const at::Tensor& came, const at::Tensor& expected) {
  const auto a = came.cpu().contiguous().flatten();
  const auto b = expected.cpu().contiguous().flatten();
  const auto size = a.element_size();
  const auto* left = static_cast<const char*>(a.const_data_ptr());
  const auto* right = static_cast<const char*>(b.const_data_ptr());
  std::int64_t differing = 0;
  std::int64_t first = -1;
  for (std::int64_t i = 0; i < a.numel(); ++i)
    if (std::memcmp(left + i * size, right + i * size, static_cast<std::size_t>(size)) != 0) {
      first = first < 0 ? i : first;
      ++differing;
    }
  if (differing == 0) return {};
  classic_ostringstream text;
  text.precision(9);
  text << "the gradient of " << name << " differs in " << differing << " of " << a.numel() << " elements, first in element "
       << first << " of " << expected.sizes() << ": the cluster has " << a[first].item<double>() << ", the single process "
       << b[first].item<double>();
  return text.str();
}

}  // namespace

std::optional<std::string> first_difference(const named_tensors& came, const named_tensors& expected) {
  std::map<std::string, at::Tensor> by_name(came.begin(), came.end());
  for (const auto& [name, theirs] : expected) {
    const auto at = by_name.find(name);
    const auto ours = at == by_name.end() ? at::Tensor{} : at->second;
    if (at != by_name.end()) by_name.erase(at);
    if (!ours.defined() && !theirs.defined()) continue;
    if (shape_of(ours) != shape_of(theirs))
      return "the gradient of " + name + " differs: the cluster has " + shape_of(ours) + ", the single process " +
             shape_of(theirs);
    if (auto text = differing_values(name, ours, theirs)) return text;
  }
  for (const auto& [name, ours] : by_name)
    if (ours.defined())
      return "the gradient of " + name + " differs: the cluster has " + shape_of(ours) +
             ", the single process does not know it";
  return {};
}

void copy_parameters(const std::vector<named_tensors>& from, whole_model& to) {
  const torch::NoGradGuard no_graph;
  if (from.size() != to.stages().size())
    throw std::runtime_error("expected parameters of " + std::to_string(to.stages().size()) + " stages, but got " +
                             std::to_string(from.size()));
  for (std::size_t s = 0; s < from.size(); ++s) {
    auto parameters = to.stages()[s]->named_parameters();
    if (parameters.size() != from[s].size())
      throw std::runtime_error("stage " + std::to_string(s + 1) + ": expected " + std::to_string(parameters.size()) +
                               " parameters, but got " + std::to_string(from[s].size()));
    for (const auto& [name, value] : from[s]) {
      auto* parameter = parameters.find(name);
      if (parameter == nullptr || shape_of(*parameter) != shape_of(value))
        throw std::runtime_error(
          "stage " + std::to_string(s + 1) + ": parameter " + name + " came as " + shape_of(value) +
          (parameter == nullptr ? ", but the stage has none of that name" : ", expected " + shape_of(*parameter)));
      parameter->copy_(value);
    }
  }
}

std::vector<named_tensors> single_process_gradients(whole_model& model, const batch& windows,
                                                    const std::vector<std::int64_t>& sizes) {
  const auto threads = at::get_num_threads();
  at::set_num_threads(1);
  for (const auto& parameter : model.parameters()) parameter.mutable_grad().reset();
  for (const auto& each : cut(windows, sizes))
    torch::autograd::backward({character_loss(model.forward(each.windows.inputs), each.windows.targets, each.share)}, {});
  at::set_num_threads(threads);
  std::vector<named_tensors> gradients;
  for (const auto& each : model.stages()) {
    auto& of_stage = gradients.emplace_back();
    for (const auto& parameter : each->named_parameters()) of_stage.emplace_back(parameter.key(), parameter.value().grad());
  }
  return gradients;
}

void verification::check(whole_model& model, const batch& windows, const std::vector<std::int64_t>& sizes, std::int64_t step,
                         const std::vector<std::string>& names, const std::vector<named_tensors>& came) {
  const auto expected = single_process_gradients(model, windows, sizes);
  parameters_ = 0;
  for (std::size_t s = 0; s < came.size(); ++s) {
    if (const auto text = first_difference(came[s], expected[s]))
      throw std::runtime_error("step " + std::to_string(step) + ", " + names[s] + ": " + *text);
    parameters_ += static_cast<std::int64_t>(expected[s].size());
  }
  ++steps_;
}

std::string verification::text() const {
  return "verified: in " + std::to_string(steps_) + (steps_ == 1 ? " step" : " steps") + " the gradients of all " +
         std::to_string(parameters_) + " parameters have the bits that libtorch's own engine computes in one process";
}

}  // namespace troupe::apps::charlm
