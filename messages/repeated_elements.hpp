// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

/// A tensor that was expanded has one element in memory for many places: the gradient of a sum is one number for all elements. Such a
/// tensor travels as what is in memory, beside its shape.
namespace troupe {

/// The tensor with size 1 in each dimension along which it repeats its elements (stride 0), detached; `shape` gets the whole shape. A
/// tensor that repeats nothing comes back as it is, with an empty `shape`. Shares the storage.
at::Tensor without_repetition(const at::Tensor& tensor, std::vector<std::int64_t>& shape);

/// The other way round; an empty `shape` leaves the tensor as it is. Throws troupe::error (malformed_message) where `shape` is none that
/// the tensor can be expanded to, or one that no tensor has.
at::Tensor with_repetition(const at::Tensor& tensor, const std::vector<std::int64_t>& shape);

}  // namespace troupe
