// SPDX-License-Identifier: BSD-3-Clause
#include "apps/split/halves.hpp"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "apps/split/cut.hpp"

namespace troupe::apps::split {

constexpr std::int64_t hidden_of_features = 64;
constexpr std::int64_t hidden_of_labels = 32;

half::half(std::int64_t in, std::int64_t hidden, std::int64_t out, std::optional<std::uint64_t> seed) {
  const normal_numbers random(seed);
  const auto layer = [&](std::int64_t from, std::int64_t to) {
    const auto scale = std::sqrt(2.0 / static_cast<double>(from));
    parameters_.push_back((random.draw({to, from}) * scale).requires_grad_());
    parameters_.push_back(at::zeros({to}).requires_grad_());
  };
  layer(in, hidden);
  layer(hidden, out);
}

at::Tensor half::forward(const at::Tensor& rows) const {
  const auto hidden = at::relu(at::linear(rows, parameters_[0], parameters_[1]));
  return at::linear(hidden, parameters_[2], parameters_[3]);
}

void half::step(double rate, at::TensorList gradients) {
  at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (gradients[i].defined()) parameters_[i].sub_(gradients[i], rate);
}

half features_half(std::int64_t columns, std::optional<std::uint64_t> seed) {
  return {columns, hidden_of_features, width_of_cut, seed};
}

half labels_half(std::optional<std::uint64_t> seed) {
  if (seed) ++*seed;
  return {width_of_cut, hidden_of_labels, 1, seed};
}

at::Tensor loss_of(const half& labels_side, const at::Tensor& activations, const at::Tensor& labels) {
  return at::binary_cross_entropy_with_logits(labels_side.forward(activations), labels);
}

}  // namespace troupe::apps::split
