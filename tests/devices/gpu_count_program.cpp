// SPDX-License-Identifier: BSD-3-Clause
// The exit status is the number of GPUs that the driver in LD_LIBRARY_PATH reports.
#include <troupe/devices/cuda_kernels.hpp>

int main() { return troupe::devices::gpu_count(); }
