// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/input_buffer.hpp>

#include <utility>

#include <ATen/ATen.h>
#include <ATen/CachedTensorUtils.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/variable.h>

namespace troupe::engine {

bool is_ours_to_change(const at::Tensor& tensor) {
  if (at::isTensorSubclassLike(tensor) || tensor._is_zerotensor() || tensor.is_nested() || !tensor.has_storage()) return false;
  const std::size_t cached = at::caching::is_cached_tensor(tensor) ? 1 : 0;
  return tensor.is_non_overlapping_and_dense() && torch::autograd::impl::is_tensor_stealable(tensor, 1 + cached) &&
         tensor.storage().use_count() == 1;
}

void accumulate(at::Tensor& buffer, at::Tensor&& value) {
  if (!value.defined()) return;
  if (!buffer.defined()) {
    buffer = std::move(value);
    return;
  }
  if (c10::GradMode::is_enabled()) {
    buffer = buffer.is_sparse() && !value.is_sparse() ? value + buffer : buffer + value;
  } else if (buffer.is_sparse() || buffer.is_sparse_csr()) {
    // The dense operand has to come first.
    if (is_ours_to_change(value))
      buffer = value.add_(buffer);
    else
      buffer = value + buffer;
  } else if (is_ours_to_change(buffer) && !at::isTensorSubclassLike(value)) {
    buffer.add_(value);
  } else {
    buffer = buffer + value;
  }
}

}  // namespace troupe::engine
