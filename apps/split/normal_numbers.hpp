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
///   NN-1  without a seed the numbers come from the system's random numbers (random(4)), and nobody else can compute them. libtorch's
///         generator would not do: it uses 32 bits of its seed, and a party could try all of them.
class normal_numbers {
 public:
  static constexpr std::int64_t greatest_seed = 0xFFFFFFFF;  // of libtorch's generator

  /// `seed`: two sources with one seed give the same numbers, for tests. Nothing: nobody knows the numbers.
  explicit normal_numbers(std::optional<std::uint64_t> seed);

  /// Throws std::system_error if the system gives no random numbers. `sizes`: of the tensor of float32.
  at::Tensor draw(at::IntArrayRef sizes) const;

 private:
  at::Generator seeded_;  // undefined without a seed
  std::shared_ptr<std::random_device> system_;
};

}  // namespace troupe::apps::split
