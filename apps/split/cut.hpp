// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/split_learning_test.cpp
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace troupe::apps::split {

/// Draws normally distributed numbers with mean 0 and standard deviation 1, for noise and for initial weights. Copies of an
/// object draw from one source. libtorch's generator is used only with a seed. It uses 32 bits of a seed, so another party
/// could try all seeds.
///   NN-1  without a seed, the numbers come from the random numbers of the system (random(4)), and nobody can compute them.
class normal_numbers {
 public:
  static constexpr std::int64_t greatest_seed = 0xFFFFFFFF;  // libtorch's generator uses 32 bits of a seed

  /// `seed`: for tests, because two objects with one seed draw the same numbers. Without a seed, nobody can compute the
  /// numbers.
  explicit normal_numbers(std::optional<std::uint64_t> seed);

  /// Returns a tensor of float32 with these sizes. Throws std::system_error if the system gives no random numbers.
  at::Tensor draw(at::IntArrayRef sizes) const;

 private:
  at::Generator seeded_;  // undefined without a seed
  std::shared_ptr<std::random_device> system_;
};

/// How a party protects the rows that it sends across the cut. At the cut the model is divided between two parties: one sends
/// activations, the other sends their gradients. Rows are clipped and get Gaussian noise, as differential privacy requires. How
/// much privacy this gives is not computed here. It depends on the data, on how often a row is sent, and on how batches are
/// drawn.
struct cut_options {
  double clip = 0;   // largest L2 norm of a row; rows with a larger norm are scaled down. 0: no clipping
  double noise = 0;  // standard deviation of the noise that is added to each number, in multiples of `clip`; needs a clip
};

class cut {
 public:
  /// `seed`: the seed of the noise (normal_numbers). Throws troupe::error (misuse) for noise without a clip.
  cut(cut_options how, std::optional<std::uint64_t> seed);

  /// Returns the rows, clipped and with noise. `rows`: [rows, columns]. The result is differentiable: clipping scales the
  /// gradient, and noise does not change it.
  at::Tensor shielded(const at::Tensor& rows);
  /// Returns the same rows. In the backward pass, their gradient is clipped and gets noise. With noise, a second backward pass
  /// fails, because the mean of many gradients with different noise has little noise.
  at::Tensor with_shielded_gradient(const at::Tensor& rows);

 private:
  const cut_options how_;
  normal_numbers random_;
};

}  // namespace troupe::apps::split
