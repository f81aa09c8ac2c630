// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unordered_map>

#include <ATen/core/Tensor.h>

namespace troupe::engine {

/// The gradients of leaves, by leaf. The table has one owner; a table that is shared as const does not change any more.
///   TB-1  the table keeps its leaves alive, so the address of a leaf in the table is never used by another leaf.
///   TB-2  a gradient in the table shares no storage with a tensor outside. A gradient is stored without a copy only if
///         nothing else refers to it.
///   TB-3  a gradient that was handed out, by find() or with a copy of the table, does not change any more: later gradients
///         are summed into new memory. Only a gradient to which nothing else refers is added to in place.
class gradient_table {
 public:
  /// Adds to the gradient of the leaf, with the bits of libtorch's AccumulateGrad. The first gradient is stored unchanged if
  /// nothing else refers to the gradient and the gradient has the memory layout that AccumulateGrad asks for; otherwise the
  /// first gradient is cloned. Each later gradient is added.
  void accumulate(const at::Tensor& leaf, at::Tensor gradient);

  /// Adds all gradients of `other`, which is empty afterwards.
  void merge(gradient_table&& other);

  /// The gradient of the leaf; undefined if the table has none.
  at::Tensor find(const at::Tensor& leaf) const;

  /// True if some gradient in the table requires grad.
  bool has_graph() const;

  std::size_t size() const noexcept { return entries_.size(); }
  bool empty() const noexcept { return entries_.empty(); }
  void clear() { entries_.clear(); }

 private:
  struct entry {
    at::Tensor leaf;
    at::Tensor gradient;
  };
  std::unordered_map<const at::TensorImpl*, entry> entries_;
};

}  // namespace troupe::engine
