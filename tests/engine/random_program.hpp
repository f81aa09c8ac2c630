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

/// Sends tensors of one side of a program to the other side and returns the tensors that arrive.
using crossing = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& tensors, int from, int to)>;

struct program_options {
  int steps = 25;
  bool unusual = true;  // other dtypes than float, sparse gradients, in-place operations, custom functions
  crossing cross;       // if set, the program has two sides, with its roots on side 0
  bool calls = false;   // side 1 keeps only its leaves between two crossings, as a remote function does
};

/// A random differentiable program: the same seed gives the same tensors and the same graph.
struct random_program {
  random_program(std::uint64_t seed, const program_options& options = {});

  std::vector<at::Tensor> leaves;
  std::vector<at::Tensor> values;  // leaves, and tensors computed from them that require grad
  std::vector<at::Tensor> roots;
  std::vector<at::Tensor> root_gradients;       // some are undefined (for scalar roots), some expanded
  std::map<std::string, std::size_t> features;  // parts of the program, with the number of their uses
};

/// Registers hooks of every kind, drawn from the seed, on the functions and tensors of a program. The hooks write what they
/// get into `trace`. Some hooks replace what they get, and a few throw. The kinds of hooks are counted in the program's
/// features. `trimmed`: the pass has inputs. Post-hooks then ignore outputs, because unneeded outputs are undefined in troupe
/// and may have any value in libtorch.
void add_hooks(random_program& program, std::uint64_t seed, bool trimmed, std::shared_ptr<std::vector<std::string>> trace);

}  // namespace troupe::test
