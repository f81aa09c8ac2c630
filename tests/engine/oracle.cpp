// SPDX-License-Identifier: BSD-3-Clause
#include "engine/oracle.hpp"

#include <cstring>
#include <sstream>
#include <unordered_set>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function_hook.h>

namespace troupe::test {

namespace {

// A tensor that is known to be zero has no memory to compare.
at::Tensor with_memory(const at::Tensor& tensor) {
  return tensor._is_zerotensor() ? at::zeros(tensor.sizes(), tensor.options()) : tensor.detach().resolve_conj().resolve_neg();
}

bool same_strides(const at::Tensor& a, const at::Tensor& b, strides compare) {
  for (std::int64_t i = 0; i < a.dim(); ++i)
    if (a.stride(i) != b.stride(i) && (compare == strides::exact || a.size(i) > 1)) return false;
  return true;
}

std::string difference_of_strided(const at::Tensor& a, const at::Tensor& b, strides compare) {
  std::ostringstream text;
  if (a.sizes() != b.sizes() || !same_strides(a, b, compare)) {
    text << "shapes " << a.sizes() << " and " << b.sizes() << ", strides " << a.strides() << " and " << b.strides();
    return text.str();
  }
  if (a._is_zerotensor() != b._is_zerotensor())
    return a._is_zerotensor() ? "only the first is known to be zero" : "only the second is known to be zero";
  const at::Tensor x = with_memory(a).contiguous();
  const at::Tensor y = with_memory(b).contiguous();
  if (std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) != 0) text << "values\n" << x << "\nand\n" << y;
  return text.str();
}

struct order_hook final : torch::autograd::FunctionPreHook {
  order_hook(std::size_t number, std::shared_ptr<std::vector<std::size_t>> order) : number(number), order(std::move(order)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
    order->push_back(number);
    return gradients;
  }
  std::size_t number;
  std::shared_ptr<std::vector<std::size_t>> order;
};

}  // namespace

std::string difference(const at::Tensor& a, const at::Tensor& b, strides compare) {
  if (!a.defined() || !b.defined())
    return a.defined() == b.defined() ? "" : a.defined() ? "only the first is defined" : "only the second is defined";
  if (a.scalar_type() != b.scalar_type() || a.layout() != b.layout()) {
    std::ostringstream text;
    text << a.options() << " and " << b.options();
    return text.str();
  }
  if (a.is_sparse()) {
    const std::string indices = difference_of_strided(a._indices(), b._indices(), compare);
    return indices.empty() ? difference_of_strided(a._values(), b._values(), compare) : indices;
  }
  return difference_of_strided(a, b, compare);
}

std::string difference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b, strides compare) {
  if (a.size() != b.size()) return std::to_string(a.size()) + " and " + std::to_string(b.size()) + " tensors";
  for (std::size_t i = 0; i < a.size(); ++i)
    if (const std::string found = difference(a[i], b[i], compare); !found.empty())
      return "tensor " + std::to_string(i) + ": " + found;
  return "";
}

std::vector<torch::autograd::Node*> functions_of(const std::vector<at::Tensor>& roots) {
  std::vector<torch::autograd::Node*> all;
  std::unordered_set<torch::autograd::Node*> seen;
  const auto visit = [&](torch::autograd::Node* function) {
    if (function != nullptr && seen.insert(function).second) all.push_back(function);
  };
  for (const at::Tensor& root : roots) visit(torch::autograd::impl::gradient_edge(root).function.get());
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const auto& edge : all[i]->next_edges()) visit(edge.function.get());
  return all;
}

void record_order(const std::vector<at::Tensor>& roots, std::shared_ptr<std::vector<std::size_t>> order) {
  const auto functions = functions_of(roots);
  for (std::size_t i = 0; i < functions.size(); ++i) functions[i]->add_pre_hook(std::make_unique<order_hook>(i, order));
}

std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& leaves) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& leaf : leaves) gradients.push_back(leaf.grad());
  return gradients;
}

void clear_gradients(const std::vector<at::Tensor>& leaves) {
  for (const at::Tensor& leaf : leaves) leaf.mutable_grad() = at::Tensor();
}

}  // namespace troupe::test
