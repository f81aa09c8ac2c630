// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/devices/cuda/functions.hpp>

#include "gpu_device.hpp"
#include "gpu_report.hpp"

namespace troupe::bench {

/// The kernels' bodies on the CPU, each thread of a grid after the other. With this table gpu_check compares without a GPU.
const devices::cuda::functions& kernels_on_the_cpu();

/// The kernels for this device: own_cuda_kernels() for a GPU, kernels_on_the_cpu() for the CPU; null if there are none.
const devices::cuda::functions* kernels_of(const gpu_device& where);

/// Compares each kernel with its counterpart on the host (devices/compression.hpp, and copies), bit for bit: random elements of all
/// magnitudes, NaN and infinity, and sizes that fill no block.
void compare_kernels(const gpu_device& where, bool quick, gpu_report& report);

}  // namespace troupe::bench
