// SPDX-License-Identifier: BSD-3-Clause
// The operators of the simulated accelerator. Each operator computes the shape of its result, queues the work on the stream
// and returns.
#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/ccol_indices_native.h>
#include <ATen/ops/col_indices_native.h>
#include <ATen/ops/crow_indices_native.h>
#include <ATen/ops/row_indices_native.h>
#include <ATen/ops/values_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include "support/simulated_streams.hpp"

namespace troupe::test::simulated {

namespace {

using views = std::vector<at::Tensor>;

c10::Stream stream_of(const at::Tensor& tensor) {
  return c10::impl::VirtualGuardImpl(at::kPrivateUse1).getStream(tensor.device());
}

// The elements as a CPU tensor. Like a kernel's pointer, the tensor keeps nothing alive.
at::Tensor bare(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
  return at::from_blob(const_cast<void*>(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(),
                       tensor.options().device(at::kCPU));
}

// Queues `kernel` over the elements of the tensors. The kernel writes the first tensor. Host tensors are passed unchanged.
void launch(const at::Tensor& result, const views& operands, std::function<void(views&)> kernel) {
  views all{bare(result)};
  for (const at::Tensor& each : operands) all.push_back(each.is_cpu() ? each : bare(each));
  stream_set::all().compute(stream_of(result), [all = std::move(all), kernel = std::move(kernel)]() mutable { kernel(all); });
}

at::Tensor empty_memory_format(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                               std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(device.value_or(c10::impl::VirtualGuardImpl(at::kPrivateUse1).getDevice()));
  return at::detail::empty_generic(size, c10::GetAllocator(at::kPrivateUse1),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), dtype.value_or(at::kFloat), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(device.value_or(c10::impl::VirtualGuardImpl(at::kPrivateUse1).getDevice()));
  return at::detail::empty_strided_generic(size, stride, c10::GetAllocator(at::kPrivateUse1),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), dtype.value_or(at::kFloat));
}

bool is_pinned(const at::Tensor& tensor) { return at::detail::getPrivateUse1Hooks().isPinnedPtr(tensor.const_data_ptr()); }

// Copies as the copy engine of a card does, past the caches of the cores. So copies take less of the cores' time, which a card's
// do not take at all.
void copy_elements(const at::Tensor& to, const at::Tensor& from) {
#ifdef __SSE2__
  constexpr std::size_t line = 64;
  const auto bytes = to.nbytes();
  if (to.scalar_type() == from.scalar_type() && to.sizes() == from.sizes() && to.is_contiguous() && from.is_contiguous() &&
      bytes >= std::size_t{1} << 20) {
    auto* target = static_cast<char*>(to.mutable_data_ptr());
    const auto* source = static_cast<const char*>(from.const_data_ptr());
    const auto before = -reinterpret_cast<std::uintptr_t>(target) % line;
    std::memcpy(target, source, before);
    std::size_t done = before;
    for (; done + line <= bytes; done += line)
      for (std::size_t at = done; at < done + line; at += sizeof(__m128i))
        _mm_stream_si128(reinterpret_cast<__m128i*>(target + at),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + at)));
    std::memcpy(target + done, source + done, bytes - done);
    _mm_sfence();
    return;
  }
#endif
  to.copy_(from);
}

void copy_between_devices(const at::Tensor& from, const at::Tensor& to) {
  auto& streams = stream_set::all();
  const auto source = stream_of(from);
  const auto destination = stream_of(to);
  const auto start = std::make_shared<event>();
  const auto end = std::make_shared<event>();
  streams.record(start, destination);
  streams.hold(source, [start] { return start->recorded > 0; });
  streams.compute(source, [a = bare(from), b = bare(to)] { copy_elements(b, a); });
  streams.record(end, source);
  streams.hold(destination, [end] { return end->recorded > 0; });
}

std::atomic<std::size_t> copied_with_host{0};
std::atomic<std::size_t> copies_with_host{0};

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (from.is_cpu() || to.is_cpu()) {
    copied_with_host += to.nbytes();
    ++copies_with_host;
  }
  const auto copy = [](views& all) { copy_elements(all[0], all[1]); };
  if (from.is_cpu()) {
    // a transfer from pinned memory only keeps the address
    launch(to, {is_pinned(from) ? bare(from) : from.clone()}, copy);
  } else if (to.is_cpu()) {
    stream_set::all().compute(stream_of(from), [a = bare(from), b = bare(to)] { copy_elements(b, a); });
    non_blocking = non_blocking && is_pinned(to);
  } else if (from.device() == to.device()) {
    launch(to, {from}, copy);
    non_blocking = true;
  } else {
    copy_between_devices(from, to);
    non_blocking = true;
  }
  if (!non_blocking) stream_set::all().synchronize(stream_of(to.is_cpu() ? from : to));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  TORCH_CHECK(from.sizes() == to.sizes(), "the simulated accelerator can't resize ", to.sizes(), " to ", from.sizes());
  return copy_from(from, to, false);
}

at::Tensor view(const at::Tensor& self, at::IntArrayRef size) { return at::native::view(self, size); }

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                      std::optional<std::int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

at::Tensor& fill(at::Tensor& self, const at::Scalar& value) {
  launch(self, {}, [value](views& all) { all[0].fill_(value); });
  return self;
}

at::Tensor& zero(at::Tensor& self) { return fill(self, 0); }

// The value of a wrapped scalar is known on the host.
at::Tensor on_device_of(const at::Tensor& other, const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor.clone();
  TORCH_CHECK(other.is_cpu() || other.device() == tensor.device(), "operands on ", other.device(), " and ", tensor.device());
  return tensor;
}

template <class Kernel>
at::Tensor binary(const at::Tensor& a, const at::Tensor& b, Kernel kernel) {
  const auto shape = at::infer_size(a.sizes(), b.sizes());
  const auto result = at::empty(shape, (a.is_cpu() ? b : a).options().dtype(at::result_type(a, b)));
  const c10::DeviceGuard guard(result.device());
  launch(result, {on_device_of(b, a), on_device_of(a, b)}, [kernel](views& all) { all[0].copy_(kernel(all[1], all[2])); });
  return result;
}

template <class Kernel>
at::Tensor unary(const at::Tensor& a, Kernel kernel) {
  const auto result = at::empty_like(a);
  launch(result, {a}, [kernel](views& all) { all[0].copy_(kernel(all[1])); });
  return result;
}

at::Tensor add(const at::Tensor& a, const at::Tensor& b, const at::Scalar& alpha) {
  return binary(a, b, [alpha](const auto& x, const auto& y) { return at::add(x, y, alpha); });
}

at::Tensor& add_(at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  launch(self, {on_device_of(self, other)}, [alpha](views& all) { all[0].add_(all[1], alpha); });
  return self;
}

at::Tensor multiply(const at::Tensor& a, const at::Tensor& b) {
  return binary(a, b, [](const auto& x, const auto& y) { return at::mul(x, y); });
}

at::Tensor& multiply_(at::Tensor& self, const at::Tensor& other) {
  launch(self, {on_device_of(self, other)}, [](views& all) { all[0].mul_(all[1]); });
  return self;
}

at::Tensor& multiply_by_scalar_(at::Tensor& self, const at::Scalar& factor) {
  launch(self, {}, [factor](views& all) { all[0].mul_(factor); });
  return self;
}

at::Tensor tanh(const at::Tensor& self) {
  return unary(self, [](const auto& x) { return at::tanh(x); });
}

at::Tensor tanh_backward(const at::Tensor& gradient, const at::Tensor& output) {
  return binary(gradient, output, [](const auto& x, const auto& y) { return at::tanh_backward(x, y); });
}

at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b) {
  const auto result = at::empty({a.size(0), b.size(1)}, a.options());
  launch(result, {a, b}, [](views& all) { all[0].copy_(at::mm(all[1], all[2])); });
  return result;
}

at::Tensor sum(const at::Tensor& self, std::optional<at::ScalarType> dtype) {
  const auto result = at::empty({}, self.options().dtype(dtype.value_or(self.scalar_type())));
  launch(result, {self}, [dtype](views& all) { all[0].copy_(at::sum(all[1], dtype)); });
  return result;
}

at::Tensor bitwise_and(const at::Tensor& a, const at::Tensor& b) {
  return binary(a, b, [](const auto& x, const auto& y) { return at::bitwise_and(x, y); });
}

at::Tensor clamp_min(const at::Tensor& self, const at::Scalar& least) {
  return unary(self, [least](const auto& x) { return at::clamp_min(x, least); });
}

at::Tensor largest(const at::Tensor& self, at::IntArrayRef dimensions, bool) {
  TORCH_CHECK(dimensions.empty(), "the simulated accelerator reduces whole tensors only");
  const auto result = at::empty({}, self.options());
  launch(result, {self}, [](views& all) { all[0].copy_(all[1].max()); });
  return result;
}

void on_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::VirtualGuardImpl guard(at::kPrivateUse1);
  for (c10::DeviceIndex index = 0; index < device_count(); ++index)
    stream_set::all().synchronize(guard.getStream(device(index)));
  at::native::cpu_fallback(op, stack);
}

}  // namespace

std::size_t host_bytes() { return copied_with_host; }
std::size_t host_copies() { return copies_with_host; }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, kernels) {
  kernels.impl("empty.memory_format", empty_memory_format);
  kernels.impl("empty_strided", empty_strided);
  kernels.impl("_copy_from", copy_from);
  kernels.impl("_copy_from_and_resize", copy_from_and_resize);
  kernels.impl("view", view);
  kernels.impl("as_strided", as_strided);
  kernels.impl("fill_.Scalar", fill);
  kernels.impl("zero_", zero);
  kernels.impl("add.Tensor", add);
  kernels.impl("add_.Tensor", add_);
  kernels.impl("mul.Tensor", multiply);
  kernels.impl("mul_.Tensor", multiply_);
  kernels.impl("mul_.Scalar", multiply_by_scalar_);
  kernels.impl("tanh", tanh);
  kernels.impl("tanh_backward", tanh_backward);
  kernels.impl("mm", matrix_product);
  kernels.impl("sum", sum);
  kernels.impl("bitwise_and.Tensor", bitwise_and);
  kernels.impl("clamp_min", clamp_min);
  kernels.impl("amax", largest);
}

// A sparse tensor needs no kernel of its own: its parts are tensors of the device.
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, kernels) {
  kernels.impl("_sparse_coo_tensor_with_dims_and_tensors", at::native::new_with_dims_and_tensor_sparse_symint);
  kernels.impl("_indices", at::native::_indices_sparse);
  kernels.impl("_values", at::native::_values_sparse);
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, kernels) {
  kernels.impl("crow_indices", at::native::crow_indices_sparse_csr);
  kernels.impl("col_indices", at::native::col_indices_sparse_csr);
  kernels.impl("ccol_indices", at::native::ccol_indices_sparse_csr);
  kernels.impl("row_indices", at::native::row_indices_sparse_csr);
  kernels.impl("values", at::native::values_sparse_csr);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, kernels) { kernels.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>()); }

}  // namespace troupe::test::simulated
