// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <utility>

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

/// Names that hide differences between versions of libtorch. troupe is built with version 2.11 (cmake/deps.sh). The code should
/// compile with later versions too.
namespace troupe::engine {

/// The pointer with which a graph holds a function.
using node_pointer = decltype(torch::autograd::Edge::function);

/// Makes an autograd function. The graph that the function leads to is freed without recursion, however deep the graph is.
template <class Function, class... Arguments>
std::shared_ptr<Function> make_node(Arguments&&... arguments) {
  return std::shared_ptr<Function>(new Function(std::forward<Arguments>(arguments)...), torch::autograd::deleteNode);
}

}  // namespace troupe::engine
