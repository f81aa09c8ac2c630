// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::objects {

/// The state of libtorch's default generator of random numbers on the CPU, as bytes. All nodes of a process share this
/// generator.
at::Tensor random_state();

/// Sets the state: later random numbers continue from it. Throws c10::Error for bytes that are not such a state.
void set_random_state(const at::Tensor& state);

/// Throws c10::Error for bytes that set_random_state would refuse.
void check_random_state(const at::Tensor& state);

}  // namespace troupe::objects
