// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

/// libtorch's CUDA kernels, loaded at run time: troupe is not built with the CUDA toolkit and not linked against it.
namespace troupe::devices {

/// The number of GPUs that CUDA's driver shows to this process; 0 without a driver. After this call the process must not fork.
int gpu_count();

/// Loads `libtorch_cuda.so`, which registers the kernels, if there is a GPU. Returns true if the kernels are loaded, false
/// without a GPU. Throws troupe::error(misuse) with the library's name and the loader's reason. Any thread may call this
/// function, any number of times.
bool load_cuda_kernels();

/// Loads a library and makes its symbols global. The library stays loaded. Throws as load_cuda_kernels() does.
void load_library(const std::string& name);

}  // namespace troupe::devices
