// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <utility>

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

/// What differs between the versions of libtorch that troupe builds with: 2.11 is pinned, later ones should build.
namespace troupe::engine {

/// How a graph holds its functions.
using node_pointer = decltype(torch::autograd::Edge::function);

/// Makes an autograd function whose graph is freed without recursion, however deep it is.
template <class Function, class... Arguments>
std::shared_ptr<Function> make_node(Arguments&&... arguments) {
  return std::shared_ptr<Function>(new Function(std::forward<Arguments>(arguments)...), torch::autograd::deleteNode);
}

}  // namespace troupe::engine
