// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe::devices::cuda {
struct functions;
}

/// Loads libtorch's CUDA kernels and troupe's own kernels at run time. Programs are not linked with them, so one program runs
/// on machines with and without a GPU.
///   KL-1  on a machine without a GPU, no kernels are loaded.
///   KL-2  troupe's kernels are used only if their version is the one that this program expects. Another version is an error.
///   KL-3  an error names the library and the reason.
namespace troupe::devices {

/// Returns the number of GPUs that CUDA's driver shows to this process; 0 without a driver. After this call, a forked child has
/// to call exec before it uses a GPU.
int gpu_count();

/// If there is a GPU, loads `libtorch_cuda.so`, which registers CUDA's kernels with libtorch. Returns true if the kernels are
/// loaded, false without a GPU. Throws troupe::error(misuse) with the library's name and the loader's reason. Any thread may
/// call this function, any number of times.
bool load_cuda_kernels();

/// Returns troupe's own kernels (devices/cuda/functions.hpp). The first call loads them and libtorch's CUDA kernels. Returns
/// null without a GPU, or if troupe was built without nvcc. The caller then computes without troupe's kernels. Throws as
/// load_cuda_kernels() does. Any thread may call this function.
const cuda::functions* own_cuda_kernels();

/// Loads a library of troupe's kernels, checks its version, and returns its functions. The library stays loaded. Throws as
/// load_cuda_kernels() does.
const cuda::functions& load_functions(const std::string& name);

/// The file name of the library that own_cuda_kernels() loads. The loader looks for the file in the run path of the program and
/// in LD_LIBRARY_PATH.
inline constexpr const char* own_library = "libtroupe_cuda.so";

/// Loads a library and makes its symbols global. The library stays loaded. Throws as load_cuda_kernels() does.
void load_library(const std::string& name);

}  // namespace troupe::devices
