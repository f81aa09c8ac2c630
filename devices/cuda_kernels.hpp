// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

/// libtorch's CUDA kernels, brought in at run time: nothing here is built with the CUDA toolkit or linked against it.
namespace troupe::devices {

/// GPUs that CUDA's driver lets this process see; 0 where there is no driver. After it the process must not fork.
int gpu_count();

/// Loads `libtorch_cuda.so`, which registers the kernels, where there is a GPU. True if they are loaded, false without a GPU.
/// Throws troupe::error(misuse) with the library and the loader's reason. Any thread may call it, as often as it likes.
bool load_cuda_kernels();

/// Loads a library for good, with its symbols for all. Throws as above.
void load_library(const std::string& name);

}  // namespace troupe::devices
