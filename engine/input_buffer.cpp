// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/input_buffer.hpp>

#include <cmath>
#include <cstdint>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/CachedTensorUtils.h>
#include <ATen/EmptyTensor.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/variable.h>

namespace troupe::engine {

namespace {

// A call of libtorch's add takes longer than to add so many numbers.
constexpr std::int64_t few = 1024;

// Whether libtorch's add of this tensor would go to the kernel of the CPU, and would only read and write its numbers.
bool is_plain(const at::TensorImpl& tensor) {
  constexpr c10::DispatchKeySet keys(
    {c10::DispatchKey::CPU, c10::DispatchKey::ADInplaceOrView, c10::DispatchKey::AutogradCPU, c10::DispatchKey::AutocastCPU});
  return tensor.key_set() == keys && !tensor.has_symbolic_sizes_strides() && tensor.autograd_meta() == nullptr &&
         tensor.is_contiguous();
}

// Whether libtorch's add on this thread would go to other code than the kernel first: modes, tracers, autocast, observers.
bool is_plain_thread() {
  const c10::impl::PODLocalDispatchKeySet& keys = c10::impl::raw_local_dispatch_key_set;
  return (keys.included_ | keys.excluded_) == 0 && !at::hasCallbacks();
}

// Returns false, and writes nothing, if a sum is not a number: libtorch's kernels choose the bits of such a sum.
template <class Number>
bool add_numbers(const Number* a, const Number* b, Number* sum, std::int64_t count) {
  bool all = true;
  for (std::int64_t i = 0; i < count; ++i) all &= !std::isnan(a[i] + b[i]);
  for (std::int64_t i = 0; all && i < count; ++i) sum[i] = a[i] + b[i];
  return all;
}

template <class Number>
bool add_as(at::Tensor& buffer, const at::Tensor& value) {
  if (buffer.use_count() == 1 && buffer.storage().use_count() == 1) {
    auto* const sum = buffer.mutable_data_ptr<Number>();
    if (!add_numbers(sum, value.const_data_ptr<Number>(), sum, buffer.numel())) return false;
    buffer.unsafeGetTensorImpl()->bump_version();
  } else {
    const at::Tensor made(at::detail::empty_cpu(buffer.sizes(), buffer.scalar_type()));
    if (!add_numbers(buffer.const_data_ptr<Number>(), value.const_data_ptr<Number>(), made.mutable_data_ptr<Number>(),
                     buffer.numel()))
      return false;
    buffer = made;
  }
  return true;
}

// Adds a small tensor without a call into libtorch (IB-3). Returns false, and does nothing, in every unusual case.
bool add_small(at::Tensor& buffer, const at::Tensor& value) {
  const at::TensorImpl& a = *buffer.unsafeGetTensorImpl();
  const at::TensorImpl& b = *value.unsafeGetTensorImpl();
  if (!is_plain(a) || !is_plain(b) || a.dtype() != b.dtype() || a.numel() > few || a.sizes() != b.sizes() || !is_plain_thread())
    return false;
  if (a.dtype() == caffe2::TypeMeta::Make<float>()) return add_as<float>(buffer, value);
  return a.dtype() == caffe2::TypeMeta::Make<double>() && add_as<double>(buffer, value);
}

}  // namespace

bool is_ours_to_change(const at::Tensor& tensor) {
  if (at::isTensorSubclassLike(tensor) || tensor._is_zerotensor() || tensor.is_nested() || !tensor.has_storage()) return false;
  const std::size_t cached = at::caching::is_cached_tensor(tensor) ? 1 : 0;
  return tensor.is_non_overlapping_and_dense() && torch::autograd::impl::is_tensor_stealable(tensor, 1 + cached) &&
         tensor.storage().use_count() == 1;
}

void add_to(at::Tensor& buffer, at::Tensor&& value) {
  if (c10::GradMode::is_enabled()) {
    buffer = buffer.is_sparse() && !value.is_sparse() ? value + buffer : buffer + value;
  } else if (add_small(buffer, value)) {
    return;
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
