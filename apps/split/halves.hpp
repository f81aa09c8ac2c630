// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/split_learning_test.cpp
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::apps::split {

/// How many numbers of each row are sent across the cut (cut_options).
inline constexpr std::int64_t width_of_cut = 8;

/// The half of the model that one party trains: two layers, and the step that changes their weights. The half of the feature
/// side has `width_of_cut` outputs. They are the inputs of the half of the label side.
class half {
 public:
  /// `seed`: the seed of the initial weights (normal_numbers).
  half(std::int64_t in, std::int64_t hidden, std::int64_t out, std::optional<std::uint64_t> seed);

  /// `rows`: [rows, in]. Returns [rows, out].
  at::Tensor forward(const at::Tensor& rows) const;
  const std::vector<at::Tensor>& parameters() const noexcept { return parameters_; }
  /// Makes a step of stochastic gradient descent. `gradients`: one for each parameter, in the order of parameters(). A
  /// parameter with an undefined gradient does not change.
  void step(double rate, at::TensorList gradients);

 private:
  std::vector<at::Tensor> parameters_;  // weight and bias of the first layer, then of the second
};

half features_half(std::int64_t columns, std::optional<std::uint64_t> seed);
half labels_half(std::optional<std::uint64_t> seed);

/// Returns the mean binary cross entropy of the rows. `activations`: [rows, width_of_cut]. `labels`: [rows, 1], 0 or 1.
at::Tensor loss_of(const half& labels_side, const at::Tensor& activations, const at::Tensor& labels);

}  // namespace troupe::apps::split
