// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::engine {

/// Whether a sum may be made in the memory of `tensor`: nothing else refers to it. An object of Python that no program can
/// reach any more does not count.
bool is_ours_to_change(const at::Tensor& tensor);

/// Adds `value` to `buffer`, the sum of an input. Operands and their order are those of libtorch's input buffers, so the bits
/// are libtorch's.
///   IB-1  an undefined value adds nothing. The first value is moved in unchanged.
///   IB-2  the sum reuses an operand's memory only if nothing else refers to that memory, and grad mode is off.
void accumulate(at::Tensor& buffer, at::Tensor&& value);

}  // namespace troupe::engine
