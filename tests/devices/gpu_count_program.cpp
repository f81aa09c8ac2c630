// SPDX-License-Identifier: BSD-3-Clause
// Its exit status is the number of GPUs that the driver in LD_LIBRARY_PATH tells of.
#include <troupe/devices/cuda_kernels.hpp>

int main() { return troupe::devices::gpu_count(); }
