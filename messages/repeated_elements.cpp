// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/repeated_elements.hpp>

#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/core/grad_mode.h>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/plain_text.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe {

at::Tensor without_repetition(const at::Tensor& tensor, std::vector<std::int64_t>& shape) {
  shape.clear();
  if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_nested() || at::isTensorSubclassLike(tensor) ||
      tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides() || !tensor.has_storage() || tensor.numel() == 0 ||
      tensor.is_conj() || tensor.is_neg() || tensor._is_zerotensor())
    return tensor;
  std::vector<std::int64_t> stored = tensor.sizes().vec();
  for (std::size_t d = 0; d < stored.size(); ++d)
    if (tensor.stride(static_cast<std::int64_t>(d)) == 0) stored[d] = 1;
  if (at::IntArrayRef(stored) == tensor.sizes()) return tensor;
  const at::NoGradGuard no_grad;
  shape = tensor.sizes().vec();
  return tensor.detach().as_strided(stored, tensor.strides());
}

at::Tensor with_repetition(const at::Tensor& tensor, const std::vector<std::int64_t>& shape) {
  if (shape.empty()) return tensor;
  bool fits = tensor.defined() && tensor.layout() == at::kStrided && shape_travels(shape) &&
              static_cast<std::size_t>(tensor.dim()) == shape.size();
  for (std::size_t d = 0; fits && d < shape.size(); ++d) {
    const std::int64_t size = tensor.size(static_cast<std::int64_t>(d));
    fits = size == shape[d] || (size == 1 && shape[d] > 0);
  }
  if (!fits) {
    classic_ostringstream text;
    text << "a tensor " << describe(tensor) << " is said to have the shape " << at::IntArrayRef(shape)
         << ", to which it can't be expanded";
    throw error(errc::malformed_message, text.str());
  }
  return tensor.expand(shape);
}

}  // namespace troupe
