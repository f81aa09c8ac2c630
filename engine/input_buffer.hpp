// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <ATen/core/Tensor.h>

namespace troupe::engine {

/// Whether a sum may be made in the memory of `tensor`: nothing else refers to it. An object of Python that no program can
/// reach any more does not count.
bool is_ours_to_change(const at::Tensor& tensor);

/// As accumulate(), for two defined tensors.
void add_to(at::Tensor& buffer, at::Tensor&& value);

/// Adds `value` to `buffer`, the sum of an input. Operands and their order are those of libtorch's input buffers, so the bits
/// are libtorch's.
///   IB-1  an undefined value adds nothing. The first value is moved in unchanged.
///   IB-2  the sum reuses an operand's memory only if nothing else refers to that memory, and grad mode is off.
///   IB-3  small sums of floats or doubles on the CPU are made without a call into libtorch, and have the bits of such a call.
///         libtorch is called under modes, observers, autocast and forward-mode derivatives, and for sums that are not numbers.
inline void accumulate(at::Tensor& buffer, at::Tensor&& value) {
  if (!buffer.defined())
    buffer = std::move(value);
  else if (value.defined())
    add_to(buffer, std::move(value));
}

}  // namespace troupe::engine
