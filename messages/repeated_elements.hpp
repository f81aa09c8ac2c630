// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

/// Tensors that repeat their elements. An expanded tensor has one element in memory for many positions. For example, the
/// gradient of a sum is one number for all elements. Such a tensor travels as the elements in memory and its shape.
namespace troupe {

/// Returns the tensor, detached, with size 1 in each dimension along which the tensor repeats its elements (stride 0); `shape`
/// becomes the whole shape. A tensor that repeats nothing is returned unchanged, with an empty `shape`. The result shares the
/// storage.
at::Tensor without_repetition(const at::Tensor& tensor, std::vector<std::int64_t>& shape);

/// The inverse of without_repetition(): expands the tensor to `shape`. An empty `shape` leaves the tensor unchanged. Throws
/// troupe::error (malformed_message) if the tensor cannot be expanded to `shape`, or if no tensor can have that shape.
at::Tensor with_repetition(const at::Tensor& tensor, const std::vector<std::int64_t>& shape);

}  // namespace troupe
