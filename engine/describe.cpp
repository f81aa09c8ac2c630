// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/describe.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>

namespace troupe::engine {

namespace {

constexpr std::string_view beginning = "troupe: the error came from function '";

void add_device(std::set<std::string>& names, const torch::autograd::InputMetadata& of) {
  if (!of.was_default_constructed()) names.insert(of.device().str());
}

}  // namespace

void add_failed_function(c10::Error& to, const torch::autograd::Node& failed) {
  const auto& before = to.context();
  if (std::any_of(before.begin(), before.end(), [](const std::string& each) { return each.starts_with(beginning); })) return;
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < failed.num_inputs(); ++i) add_device(names, failed.input_metadata(i));
  for (const auto& edge : failed.next_edges())
    if (edge.is_valid()) add_device(names, edge.function->input_metadata(edge.input_nr));
  std::string devices;
  for (const auto& each : names) devices += (devices.empty() ? "" : ", ") + each;
  to.add_context(std::string(beginning) + failed.name() + "' of the backward pass; devices of its gradients: " + devices);
}

}  // namespace troupe::engine
