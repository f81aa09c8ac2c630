// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/TensorOptions.h>
#include <c10/core/impl/COW.h>

#include <troupe/messages/expect.hpp>

namespace troupe {

/// Makes a tensor over the storage, still without a shape.
inline at::Tensor tensor_over(c10::Storage storage, at::ScalarType dtype) {
  const auto key = c10::computeDispatchKey(std::nullopt, std::nullopt, storage.device());
  return at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key),
                                                  c10::scalarTypeToTypeMeta(dtype));
}

/// Whether the storage can have twins: tensor_memory has made it, or it is a twin.
inline bool can_have_twin(const c10::Storage& storage) {
  const auto& impl = *storage.unsafeGetStorageImpl();
  return storage.device().is_cpu() &&
         (c10::impl::cow::has_simple_data_ptr(impl) || c10::impl::cow::is_cow_data_ptr(impl.data_ptr()));
}

/// Makes another storage with the same elements. When one of the two storages is written to, its elements are copied first
/// (copy on write). Pre: can_have_twin(storage).
inline c10::Storage twin_of(const c10::Storage& storage) {
  auto twin = c10::impl::cow::lazy_clone_storage(*storage.unsafeGetStorageImpl());
  TROUPE_EXPECT(twin);
  return c10::Storage(std::move(twin));
}

}  // namespace troupe
