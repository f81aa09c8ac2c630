// SPDX-License-Identifier: BSD-3-Clause
// Stand-ins for the library of CUDA kernels: one of another version, and two that give no functions.
#include <troupe/devices/cuda/functions.hpp>

#ifndef WITHOUT_SYMBOL
extern "C" const troupe::devices::cuda::functions* troupe_cuda_functions() {
#ifdef WITHOUT_TABLE
  return nullptr;
#else
  static const troupe::devices::cuda::functions table{
    troupe::devices::cuda::functions_version + 1, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  return &table;
#endif
}
#endif
