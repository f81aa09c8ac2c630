// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unordered_map>

#include <ATen/core/Tensor.h>

#include <troupe/engine/device_events.hpp>

namespace troupe::engine {

/// Stores the gradients of leaves, by leaf. The table has one owner; a table that is shared as const does not change any more.
///   TB-1  the table keeps its leaves alive, so the address of a leaf in the table is never used by another leaf.
///   TB-2  a gradient in the table shares no storage with a tensor outside. A gradient is stored without a copy only if nothing
///         else refers to it.
///   TB-3  a gradient that was handed out, by find() or with a copy of the table, does not change any more: later gradients are
///         summed into new memory. Sums are made in place only if nothing else refers to the gradient, and never in an
///         accelerator's gradient that was handed out.
///   TB-4  after made_here(), the current streams of a thread that calls find() or merge() wait for the streams that made the
///         gradients.
class gradient_table {
 public:
  /// Adds to the gradient of the leaf, with the bits of libtorch's AccumulateGrad. The first gradient is stored unchanged if
  /// nothing else refers to the gradient and the gradient has the memory layout that AccumulateGrad asks for; otherwise the
  /// first gradient is cloned. Each later gradient is added.
  void accumulate(const at::Tensor& leaf, at::Tensor gradient);

  /// Notes that the current streams of the calling thread have made the gradients, or wait for them. To be called before the
  /// table is handed to another thread.
  void made_here();

  /// Adds all gradients of `other`, which is empty afterwards. The current streams of the calling thread make the sums.
  void merge(gradient_table&& other);

  /// Returns the gradient of the leaf; undefined if the table has none.
  at::Tensor find(const at::Tensor& leaf) const;

  /// True if some gradient in the table requires grad.
  bool has_graph() const;

  std::size_t size() const noexcept { return entries_.size(); }
  bool empty() const noexcept { return entries_.empty(); }
  void clear() { *this = {}; }

 private:
  struct entry {
    at::Tensor leaf;
    at::Tensor gradient;
  };
  std::unordered_map<const at::TensorImpl*, entry> entries_;
  bool has_accelerators_ = false;  // some gradient may be on an accelerator
  device_events made_;             // used with has_accelerators_
};

}  // namespace troupe::engine
