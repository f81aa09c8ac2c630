// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe::devices::cuda {
struct functions;
}

/// libtorch's CUDA kernels and troupe's own ones, loaded at run time: programs are not linked with them, so one program serves
/// machines with and without a GPU.
///   KL-1  without a GPU nothing is loaded.
///   KL-2  troupe's kernels are used only if they have the version that this program expects.
///   KL-3  an error names the library and the reason.
namespace troupe::devices {

/// The number of GPUs that CUDA's driver shows to this process; 0 without a driver. After this call the process must not fork.
int gpu_count();

/// Loads `libtorch_cuda.so`, which registers the kernels, if there is a GPU. Returns true if the kernels are loaded, false
/// without a GPU. Throws troupe::error(misuse) with the library's name and the loader's reason. Any thread may call this
/// function, any number of times.
bool load_cuda_kernels();

/// troupe's own kernels (devices/cuda/functions.hpp), and libtorch's: the first call loads both. Null without a GPU, and if
/// troupe was built without nvcc; the caller then computes without them. Throws as load_cuda_kernels() does. Any thread may
/// call this function.
const cuda::functions* own_cuda_kernels();

/// Loads a library of kernels and checks its version. The library stays loaded. Throws as load_cuda_kernels() does.
const cuda::functions& load_functions(const std::string& name);

/// The library that own_cuda_kernels() loads; the loader finds it by the run path of the program, or by LD_LIBRARY_PATH.
inline constexpr const char* own_library = "libtroupe_cuda.so";

/// Loads a library and makes its symbols global. The library stays loaded. Throws as load_cuda_kernels() does.
void load_library(const std::string& name);

}  // namespace troupe::devices
