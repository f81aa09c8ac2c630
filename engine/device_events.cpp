// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/device_events.hpp>

#include <algorithm>

// Included before LegacyBatchedTensorImpl.h, which has functions of the same names.
#include <ATen/functorch/BatchedTensorImpl.h>

#include <ATen/LegacyBatchedTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace troupe::engine {

namespace {

void record_storage(const at::Tensor& tensor, const c10::Stream& stream) {
  if (tensor.defined() && tensor.device() == stream.device() && tensor.has_storage())
    c10::impl::VirtualGuardImpl(stream.device_type()).recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
}

c10::Stream current_stream(c10::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

}  // namespace

bool is_of_accelerator(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.device().is_cpu()) return false;
  return c10::impl::hasDeviceGuardImpl(tensor.device().type()) && !tensor.device().is_meta();
}

void record_use(const at::Tensor& tensor, const c10::Stream& stream) {
  if (const auto* legacy = at::maybeGetBatchedImpl(tensor)) {
    record_use(legacy->value(), stream);
  } else if (const auto* batched = at::functorch::maybeGetBatchedImpl(tensor)) {
    record_use(batched->value(), stream);
  } else if (tensor.layout() == at::kSparse) {
    record_storage(tensor._indices(), stream);
    record_storage(tensor._values(), stream);
  } else if (at::sparse_csr::is_sparse_compressed(tensor)) {
    const bool by_row = tensor.layout() == at::kSparseCsr || tensor.layout() == at::kSparseBsr;
    record_storage(by_row ? tensor.crow_indices() : tensor.ccol_indices(), stream);
    record_storage(by_row ? tensor.col_indices() : tensor.row_indices(), stream);
    record_storage(tensor.values(), stream);
  } else {
    record_storage(tensor, stream);
  }
}

std::shared_ptr<c10::Event> recorded(const c10::Stream& stream) {
  auto made = std::make_shared<c10::Event>(stream.device_type());
  made->record(stream);
  return made;
}

void device_events::record(const at::Tensor& tensor) {
  if (!is_of_accelerator(tensor)) return;
  const auto device = tensor.device();
  if (std::any_of(made_.begin(), made_.end(), [&](const auto& each) { return each.first.device() == device; })) return;
  const auto stream = current_stream(device);
  made_.emplace_back(stream, recorded(stream));
}

void device_events::wait(const at::Tensor& tensor) const {
  if (made_.empty() || !is_of_accelerator(tensor)) return;
  const auto stream = current_stream(tensor.device());
  for (const auto& [made_on, made] : made_) {
    if (made_on.device() != tensor.device() || made_on == stream) continue;
    made->block(stream);
    record_use(tensor, stream);
  }
}

}  // namespace troupe::engine
