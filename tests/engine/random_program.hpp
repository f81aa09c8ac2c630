// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::test {

/// Carries tensors of one side of a program to the other one and returns what arrives.
using crossing = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& tensors, int from, int to)>;

struct program_options {
  int steps = 25;
  bool unusual = true;  // dtypes beside float, sparse gradients, in-place operations, functions that are not libtorch's
  crossing cross;       // set: the program has two sides; its roots are on side 0
  bool calls = false;   // side 1 keeps only its leaves from one crossing to the next, as a remote function does
};

/// A random differentiable program: the same seed gives the same tensors and the same graph.
struct random_program {
  random_program(std::uint64_t seed, const program_options& options = {});

  std::vector<at::Tensor> leaves;
  std::vector<at::Tensor> values;  // leaves, and what was computed from them and requires grad
  std::vector<at::Tensor> roots;
  std::vector<at::Tensor> root_gradients;       // some undefined where the root is a scalar, some expanded
  std::map<std::string, std::size_t> features;  // what it is made of, by number of uses
};

/// Registers hooks of every kind on the functions and tensors of a program, drawn from the seed. They write into `trace` what
/// they are shown, and some replace it; a few throw. What they are is counted in the program's features. `trimmed`: the pass
/// has inputs; post-hooks then do not look at outputs, as those that nobody wants are undefined here and may have any value in
/// libtorch.
void add_hooks(random_program& program, std::uint64_t seed, bool trimmed, std::shared_ptr<std::vector<std::string>> trace);

}  // namespace troupe::test
