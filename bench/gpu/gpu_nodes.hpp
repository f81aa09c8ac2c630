// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gpu_device.hpp"
#include "gpu_report.hpp"

namespace troupe::bench {

/// Two nodes of this process, which talk over loopback.
/// Compares, bit for bit, the gradients of distributed passes with those of libtorch's engine over the same functions in one place:
/// random programs whose steps run on the device, on the CPU, on the other node's device and on the other node's CPU, in any order, on one
/// stream and on several. And what a call brings back through a device map.
void compare_nodes(const gpu_device& where, bool quick, gpu_report& report);

/// Measures calls that take a tensor of the device to the other node and back, beside the same calls with tensors of the CPU.
void measure_nodes(const gpu_device& where, bool quick, gpu_report& report);

}  // namespace troupe::bench
