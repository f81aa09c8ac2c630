// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::engine {

/// Gradients of leaves, by leaf. Single owner; once shared as const it does not change any more.
///   TB-1  it keeps its leaves alive, so a leaf is never confused with another one at the same address.
///   TB-2  a gradient in it shares no storage with one outside it, unless it was moved in as its only owner.
///   TB-3  a gradient that was handed out, by find() or with a copy of the table, does not change any more: what comes later is
///         summed into new memory. Only a gradient that nobody else has is added to in place.
class gradient_table {
 public:
  /// Adds to the gradient of the leaf: takes the tensor when it is the first (cloned unless it is ours alone and obeys the
  /// layout that libtorch's AccumulateGrad asks for), otherwise sums, with AccumulateGrad's bits.
  void accumulate(const at::Tensor& leaf, at::Tensor gradient);

  /// Adds everything of `other`.
  void merge(gradient_table&& other);

  /// The gradient, undefined if there is none.
  at::Tensor find(const at::Tensor& leaf) const;

  /// Whether some gradient in it can be differentiated.
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
