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

/// Numbers that are normally distributed, with mean 0 and deviation 1: noise and first weights. Copies draw from one source.
/// libtorch's generator is used only with a seed: it uses 32 bits of a seed, and a party could try all of them.
///   NN-1  without a seed the numbers come from the system's random numbers (random(4)), and nobody else can compute them.
class normal_numbers {
 public:
  static constexpr std::int64_t greatest_seed = 0xFFFFFFFF;  // of libtorch's generator

  /// `seed`: for tests, because two sources with one seed give the same numbers. Without a seed, nobody knows the numbers.
  explicit normal_numbers(std::optional<std::uint64_t> seed);

  /// Throws std::system_error if the system gives no random numbers. `sizes`: of the tensor of float32.
  at::Tensor draw(at::IntArrayRef sizes) const;

 private:
  at::Generator seeded_;  // undefined without a seed
  std::shared_ptr<std::random_device> system_;
};

/// How a party protects the rows that it sends across the cut, the place where the model is divided between the parties:
/// activations one way, their gradients the other way. Clipping and Gaussian noise are the parts of which differential privacy
/// is made. How much privacy they give is not computed here: that depends on the data, on how often a row is sent, and on how
/// batches are drawn.
struct cut_options {
  double clip = 0;   // largest norm (L2) of a row; longer rows are made shorter. 0: no clipping
  double noise = 0;  // standard deviation of the noise that is added to each number, in multiples of `clip`; needs a clip
};

class cut {
 public:
  /// `seed`: of the noise; see normal_numbers. Throws troupe::error (misuse) for noise without a clip.
  cut(cut_options how, std::optional<std::uint64_t> seed);

  /// The rows as they cross the cut. `rows`: [rows, columns]. Differentiable: the gradient is that of clipping; noise has none.
  at::Tensor shielded(const at::Tensor& rows);
  /// The same rows. In the backward pass their gradient is clipped and noised before it goes on. With noise, a second backward
  /// pass fails: the mean of many gradients, each with a noise of its own, would have little noise.
  at::Tensor with_shielded_gradient(const at::Tensor& rows);

 private:
  const cut_options how_;
  normal_numbers random_;
};

}  // namespace troupe::apps::split
