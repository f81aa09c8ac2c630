// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/gradient_table.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

namespace troupe::engine {

namespace {

// True if another tensor uses the same storage, as the parts of a split do.
bool shares_storage(const at::Tensor& gradient) { return gradient.has_storage() && gradient.storage().use_count() > 1; }

// True if nothing else refers to the gradient or its storage. A thread that read the gradient may have dropped its reference
// only just now. This function drops its own two references, which synchronizes with that thread: later writes of the calling
// thread come after the reads of that thread.
bool is_ours_alone(const at::Tensor& gradient) {
  if (!gradient.has_storage()) return false;       // the components of sparse and opaque tensors have owners of their own
  const at::Tensor handle = gradient;              // NOLINT(performance-unnecessary-copy-initialization)
  const c10::Storage memory = gradient.storage();  // NOLINT(performance-unnecessary-copy-initialization)
  return handle.use_count() == 2 && memory.use_count() == 2;
}

// Sums as accumulateGrad does, with the same bits, but never in place.
at::Tensor sum_of(const at::Tensor& first, const at::Tensor& second) {
  const bool dense_second = first.is_sparse() && !second.is_sparse();
  return dense_second ? second + first : first + second;
}

}  // namespace

void gradient_table::accumulate(const at::Tensor& leaf, at::Tensor gradient) {
  if (!gradient.defined()) return;
  has_accelerators_ = has_accelerators_ || is_of_accelerator(gradient);
  entry& found = entries_.try_emplace(leaf.unsafeGetTensorImpl(), entry{leaf, {}}).first->second;
  if (!found.gradient.defined() && shares_storage(gradient) && gradient.layout() == at::kStrided && !gradient.is_nested()) {
    found.gradient = torch::autograd::utils::clone_obey_contract(gradient, leaf);
    return;
  }
  if (found.gradient.defined() &&
      (found.gradient.requires_grad() || !is_ours_alone(found.gradient) || (!made_.empty() && is_of_accelerator(gradient)))) {
    // Not in place: a caller may hold this gradient, a function may have saved it, or a stream may still read it.
    found.gradient = sum_of(found.gradient, gradient);
    return;
  }
  torch::autograd::AccumulateGrad::accumulateGrad(leaf, found.gradient, gradient, 1,
                                                  [&](at::Tensor&& sum) { found.gradient = std::move(sum); });
}

void gradient_table::made_here() {
  if (!has_accelerators_) return;
  made_.clear();
  for (const auto& [key, each] : entries_) made_.record(each.gradient);
}

void gradient_table::merge(gradient_table&& other) {
  has_accelerators_ = has_accelerators_ || other.has_accelerators_;
  for (const gradient_table* table : {static_cast<const gradient_table*>(this), static_cast<const gradient_table*>(&other)})
    if (has_accelerators_)
      for (const auto& [key, each] : table->entries_) table->made_.wait(each.gradient);
  for (auto& [key, theirs] : other.entries_) {
    const auto [entry, fresh] = entries_.try_emplace(key, std::move(theirs));
    if (!fresh) accumulate(entry->second.leaf, std::move(theirs.gradient));
  }
  other.clear();
  made_here();
}

bool gradient_table::has_graph() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const auto& each) { return each.second.gradient.requires_grad(); });
}

at::Tensor gradient_table::find(const at::Tensor& leaf) const {
  const auto found = entries_.find(leaf.unsafeGetTensorImpl());
  if (found == entries_.end()) return {};
  made_.wait(found->second.gradient);
  return found->second.gradient;
}

}  // namespace troupe::engine
