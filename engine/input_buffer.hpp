// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::engine {

/// Adds to what an input of a function has so far, with the operands and the order of libtorch's input buffers, so that the
/// bits are libtorch's.
///   IB-1  an undefined value adds nothing, and the first value is moved in as it is.
///   IB-2  memory is only reused where the buffer alone holds it and grad mode is off.
void accumulate(at::Tensor& buffer, at::Tensor&& value);

}  // namespace troupe::engine
