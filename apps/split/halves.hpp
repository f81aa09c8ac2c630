// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/split_learning_test.cpp
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::apps::split {

/// How many numbers of a row cross the cut.
inline constexpr std::int64_t width_of_cut = 8;

/// Two layers of a network, and the step that trains them. The half of the party with features ends in `width_of_cut` numbers,
/// and the half of the party with labels begins with them.
class half {
 public:
  /// `seed`: of the first weights; see normal_numbers.
  half(std::int64_t in, std::int64_t hidden, std::int64_t out, std::optional<std::uint64_t> seed);

  /// `rows`: [rows, in]. Returns [rows, out].
  at::Tensor forward(const at::Tensor& rows) const;
  const std::vector<at::Tensor>& parameters() const noexcept { return parameters_; }
  /// A step of stochastic gradient descent. `gradients`: one for each parameter, in their order; undefined: the parameter
  /// stays.
  void step(double rate, at::TensorList gradients);

 private:
  std::vector<at::Tensor> parameters_;  // weight and bias of the first layer, then of the second
};

half features_half(std::int64_t columns, std::optional<std::uint64_t> seed);
half labels_half(std::optional<std::uint64_t> seed);

/// The mean loss of the rows. `activations`: [rows, width_of_cut]. `labels`: [rows, 1], 0 or 1.
at::Tensor loss_of(const half& labels_side, const at::Tensor& activations, const at::Tensor& labels);

}  // namespace troupe::apps::split
