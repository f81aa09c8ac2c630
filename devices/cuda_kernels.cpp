// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/cuda_kernels.hpp>

#include <dlfcn.h>

#include <troupe/devices/cuda/functions.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::devices {

namespace {

// The types of cuInit and cuDeviceGetCount in CUDA's driver. They are written here, so that the build needs no cuda.h.
using initialize = int (*)(unsigned flags);
using count_devices = int (*)(int* count);

#ifdef TROUPE_CUDA_BUILT
constexpr bool built = true;
#else
constexpr bool built = false;
#endif

std::string loader_reason() {
  const char* reason = dlerror();  // NOLINT(concurrency-mt-unsafe): glibc has a text for each thread
  return reason == nullptr ? "no reason" : reason;
}

constexpr const char* same_build = ". The library and the program have to be of one build: install troupe again";

}  // namespace

int gpu_count() {
  static const int counted = [] {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver == nullptr) return 0;
    const auto start = reinterpret_cast<initialize>(dlsym(driver, "cuInit"));
    const auto count = reinterpret_cast<count_devices>(dlsym(driver, "cuDeviceGetCount"));
    int found = 0;
    if (start == nullptr || count == nullptr || start(0) != 0 || count(&found) != 0) return 0;
    return found;
  }();
  return counted;
}

void load_library(const std::string& name) {
  if (dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
  throw error(errc::misuse, "expected to load " + name + ", got: " + loader_reason() +
                              ". Install the whole Python package torch with the CUDA packages it depends on, or hide the GPUs "
                              "with CUDA_VISIBLE_DEVICES=-1");
}

bool load_cuda_kernels() {
  if (gpu_count() == 0) return false;
  load_library("libtorch_cuda.so");
  return true;
}

const cuda::functions& load_functions(const std::string& name) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw error(errc::misuse, "expected to load troupe's CUDA kernels from " + name + ", got: " + loader_reason() +
                                ". Install troupe again, put the library's folder into LD_LIBRARY_PATH, or hide the GPUs with "
                                "CUDA_VISIBLE_DEVICES=-1");
  const auto get = reinterpret_cast<cuda::functions_getter>(dlsym(library, cuda::functions_symbol));
  const cuda::functions* found = get == nullptr ? nullptr : get();
  if (found == nullptr)
    throw error(errc::misuse, "expected CUDA kernels of troupe in " + name + ", got a library that gives none as " +
                                cuda::functions_symbol + same_build);
  if (found->version != cuda::functions_version)
    throw error(errc::misuse, "expected version " + std::to_string(cuda::functions_version) + " of the CUDA kernels in " +
                                name + ", got version " + std::to_string(found->version) + same_build);
  return *found;
}

const cuda::functions* own_cuda_kernels() {
  if (!built || !load_cuda_kernels()) return nullptr;
  static const cuda::functions& loaded = load_functions(own_library);
  return &loaded;
}

}  // namespace troupe::devices
