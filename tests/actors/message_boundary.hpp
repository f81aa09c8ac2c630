// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/custom_function.h>

#include <troupe/messages/repeated_elements.hpp>

namespace troupe::test {

using tensors = std::vector<at::Tensor>;

/// A gradient as the receiver of a message gets it: a repeated element is in memory once (an expanded tensor), the rest is
/// dense.
inline at::Tensor travelled_gradient(const at::Tensor& gradient) {
  std::vector<std::int64_t> shape;
  auto stored = without_repetition(gradient.detach(), shape);
  if (!stored.is_non_overlapping_and_dense()) stored = stored.contiguous();
  return with_repetition(stored, shape);
}

template <bool is_gradient>
tensors cross(const tensors& from);

/// Does in one process what a message between nodes does: all tensors of the message that require grad pass through one
/// function. In backward, all gradients that have a graph pass through one function too. `unreached_cut` keeps what is behind one tensor
/// apart from what is behind another.
template <bool is_gradient>
struct boundary : torch::autograd::Function<boundary<is_gradient>> {
  static tensors forward(torch::autograd::AutogradContext* context, at::TensorList inputs) {
    context->set_materialize_grads(false);
    tensors result;
    for (const auto& each : inputs) result.push_back(is_gradient ? travelled_gradient(each) : each.clone());
    return result;
  }
  static tensors backward(torch::autograd::AutogradContext*, tensors gradients) { return cross<true>(gradients); }
};

/// The tensors as the receiver of a message gets them.
template <bool is_gradient = false>
tensors cross(const tensors& from) {
  tensors with_grad;
  for (const auto& each : from)
    if (each.defined() && each.requires_grad()) with_grad.push_back(each);
  auto result = from;
  if constexpr (is_gradient)
    for (auto& each : result)
      if (each.defined() && !each.requires_grad()) each = travelled_gradient(each);
  if (with_grad.empty()) return result;
  const auto crossed = boundary<is_gradient>::apply(at::TensorList(with_grad));  // libtorch finds no tensors in a std::vector
  for (std::size_t i = 0, next = 0; i < from.size(); ++i)
    if (from[i].defined() && from[i].requires_grad()) result[i] = at::alias(crossed[next++]);  // hooks belong to one tensor
  return result;
}

/// Until the end of the scope, a pass from `root` does not go on behind tensors of a message to which nothing leads, though the pass
/// reaches other tensors of the message: in a program without messages it would not.
class unreached_cut {
 public:
  explicit unreached_cut(const at::Tensor& root) {
    using torch::autograd::Node;
    std::map<Node*, std::set<std::uint32_t>> reached;  // by boundary: its inputs
    std::set<Node*> visited;
    torch::autograd::edge_list open{torch::autograd::impl::gradient_edge(root)};
    while (!open.empty()) {
      const auto next = open.back();
      open.pop_back();
      if (!next.is_valid()) continue;
      Node* const function = next.function.get();
      if (is_boundary(*function)) {
        if (reached[function].insert(next.input_nr).second) open.push_back(function->next_edge(next.input_nr));
      } else if (visited.insert(function).second) {
        open.insert(open.end(), function->next_edges().begin(), function->next_edges().end());
      }
    }
    for (const auto& [function, inputs] : reached)
      for (std::uint32_t i = 0; i < function->num_outputs(); ++i)
        if (!inputs.contains(i)) cut_.emplace_back(&function->next_edges()[i], std::exchange(function->next_edges()[i], {}));
  }
  ~unreached_cut() {
    for (auto& [target, edge] : cut_) *target = std::move(edge);
  }
  unreached_cut(const unreached_cut&) = delete;
  unreached_cut& operator=(const unreached_cut&) = delete;

  std::size_t size() const { return cut_.size(); }

 private:
  static bool is_boundary(torch::autograd::Node& function) {
    using torch::autograd::CppNode;
    return dynamic_cast<CppNode<boundary<false>>*>(&function) != nullptr ||
           dynamic_cast<CppNode<boundary<true>>*>(&function) != nullptr;
  }

  std::vector<std::pair<torch::autograd::Edge*, torch::autograd::Edge>> cut_;
};

}  // namespace troupe::test
