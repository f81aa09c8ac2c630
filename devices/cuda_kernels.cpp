// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/cuda_kernels.hpp>

#include <dlfcn.h>

#include <troupe/messages/errors.hpp>

namespace troupe::devices {

namespace {

// The driver's functions, with the types that cuda.h declares.
using initialize = int (*)(unsigned flags);
using count_devices = int (*)(int* count);

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
  const char* reason = dlerror();
  throw error(errc::misuse, "expected to load " + name + ", got: " + (reason == nullptr ? "no reason" : reason) +
                              ". Install the whole Python package torch with the CUDA packages it depends on, or hide the GPUs "
                              "with CUDA_VISIBLE_DEVICES=-1");
}

bool load_cuda_kernels() {
  if (gpu_count() == 0) return false;
  load_library("libtorch_cuda.so");
  return true;
}

}  // namespace troupe::devices
