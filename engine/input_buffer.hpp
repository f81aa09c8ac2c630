// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::engine {

/// Adds `value` to `buffer`, the sum of an input. Operands and their order are those of libtorch's input buffers, so the bits
/// are libtorch's.
///   IB-1  an undefined value adds nothing. The first value is moved in unchanged.
///   IB-2  the sum reuses an operand's memory only if nothing else refers to that memory, and grad mode is off.
void accumulate(at::Tensor& buffer, at::Tensor&& value);

}  // namespace troupe::engine
