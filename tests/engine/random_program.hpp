// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::test {

/// Carries tensors of one side of a program to the other one and returns what arrives.
using crossing = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& tensors, int from, int to)>;

struct program_options {
  int steps = 25;
  bool unusual = true;   // dtypes beside float, sparse gradients, in-place operations
  crossing cross;        // set: the program has two sides; its roots are on side 0
  bool calls = false;    // side 1 keeps only its leaves from one crossing to the next, as a remote function does
};

/// A random differentiable program: the same seed gives the same tensors and the same graph.
struct random_program {
  random_program(std::uint64_t seed, const program_options& options = {});

  std::vector<at::Tensor> leaves;
  std::vector<at::Tensor> values;          // leaves, and what was computed from them and requires grad
  std::vector<at::Tensor> roots;
  std::vector<at::Tensor> root_gradients;  // some undefined where the root is a scalar, some expanded
};

}  // namespace troupe::test
