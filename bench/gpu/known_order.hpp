// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

namespace troupe::bench {

/// A backward pass without an engine: the functions of a graph in an order that was found beforehand, called in a loop. What a pass takes
/// at least, on one thread and one stream. Gradients are reduced to the shapes that functions expect, as in a pass.
class known_order {
 public:
  /// The graph is kept alive.
  explicit known_order(const at::Tensor& loss);
  /// Runs the functions, in the order of libtorch's engine. Gradients gather in `.grad`.
  void run() const;

 private:
  struct edge {
    std::size_t target;  // its place in the order
    std::uint32_t input;
  };
  struct step {
    std::shared_ptr<torch::autograd::Node> function;
    std::vector<std::vector<edge>> outputs;  // of each output: none, or one
  };
  at::Tensor loss_;
  std::vector<step> steps_;
};

}  // namespace troupe::bench
