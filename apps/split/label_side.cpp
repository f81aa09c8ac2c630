// SPDX-License-Identifier: BSD-3-Clause
#include "apps/split/label_side.hpp"

#include <set>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <troupe/engine/gradient_table.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::apps::split {

namespace {

[[noreturn]] void refuse(const std::string& what) { throw error(errc::misuse, "forward: " + what); }

}  // namespace

label_side::label_side(const table& labels, double rate, cut_options how, std::optional<std::uint64_t> seed,
                       std::optional<std::uint64_t> noise_seed)
    : rate_(rate), half_(labels_half(seed)), cut_(how, noise_seed) {
  for (std::int64_t row = 0; row < labels.rows(); ++row)
    labels_[labels.people[static_cast<std::size_t>(row)]] = labels.values[row][0].item<float>();
}

call_reply label_side::forward(call_arguments& arguments) {
  const auto what = get<std::string>(arguments.values, "do");
  const auto step = get<std::int64_t>(arguments.values, "step");
  checked_lock lock(mutex_);
  if (what == "loss") return loss(step, arguments);
  if (what == "learn") return learn(step, arguments);
  refuse("expected loss or learn as the value 'do', got '" + what + "'");
}

at::Tensor label_side::labels_of(const at::Tensor& people) const {
  std::vector<float> result;
  std::set<std::int64_t> seen;  // each person once: the mean of many gradients of a person has little noise
  for (std::int64_t i = 0; i < people.numel(); ++i) {
    const auto person = people[i].item<std::int64_t>();
    const auto found = labels_.find(person);
    if (found == labels_.end()) refuse("there is no label of person " + std::to_string(person));
    if (!seen.insert(person).second)
      refuse("person " + std::to_string(person) + " is named twice; each person has one row of a batch");
    result.push_back(found->second);
  }
  return at::tensor(result).view({people.numel(), 1});
}

call_reply label_side::loss(std::int64_t step, const call_arguments& arguments) {
  if (learned_ >= step) return {{}, {{"learned", true}}};
  const auto activations = arguments.tensor(0);
  const auto people = arguments.tensor(1);
  if (people.dim() != 1 || people.scalar_type() != at::kLong || people.numel() == 0 || activations.dim() != 2 ||
      activations.scalar_type() != at::kFloat || activations.size(0) != people.size(0) || activations.size(1) != width_of_cut)
    refuse("expected activations [rows, " + std::to_string(width_of_cut) + "] float and people [rows] long, got " +
           c10::str(activations.sizes()) + " and " + c10::str(people.sizes()));
  return {{loss_of(half_, cut_.with_shielded_gradient(activations), labels_of(people))}};
}

call_reply label_side::learn(std::int64_t step, const call_arguments& arguments) {
  if (learned_ >= step) return {};
  if (arguments.gradients->empty()) refuse("a step is learned in the context of its backward pass, after the pass");
  std::vector<at::Tensor> gradients;
  for (const auto& each : half_.parameters()) gradients.push_back(arguments.gradients->find(each));
  half_.step(rate_, gradients);
  learned_ = step;
  return {};
}

}  // namespace troupe::apps::split
