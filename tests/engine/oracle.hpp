// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

/// Comparisons with libtorch's own engine.
namespace troupe::test {

/// `exact` compares every stride, `meaningful` only those of dimensions longer than 1.
enum class strides { exact, meaningful };

/// Compares dtype, shape, strides, layout and bits (undefined tensors too). Returns an empty text if all are equal, otherwise
/// the difference.
std::string difference(const at::Tensor& a, const at::Tensor& b, strides compare = strides::exact);

/// Compares two lists of tensors.
std::string difference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b, strides compare = strides::exact);

/// Every autograd function that the roots reach, numbered in an order that depends only on the shape of the graph.
std::vector<torch::autograd::Node*> functions_of(const std::vector<at::Tensor>& roots);

/// Makes every function that the roots reach write its number into `order` when it runs.
void record_order(const std::vector<at::Tensor>& roots, std::shared_ptr<std::vector<std::size_t>> order);

/// The gradients of the leaves; and a function that removes them.
std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& leaves);
void clear_gradients(const std::vector<at::Tensor>& leaves);

}  // namespace troupe::test
