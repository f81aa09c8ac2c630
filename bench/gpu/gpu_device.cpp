// SPDX-License-Identifier: BSD-3-Clause
#include "gpu_device.hpp"

#include <dlfcn.h>

#include <c10/core/impl/VirtualGuardImpl.h>

namespace troupe::bench {

void gpu_device::synchronize() const {
  if (device_.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.has_index() ? device_.index() : c10::DeviceIndex{0});
}

std::vector<c10::Stream> gpu_device::streams(std::size_t count) const {
  std::vector<c10::Stream> all;
  if (device_.is_cpu()) return all;
  const c10::impl::VirtualGuardImpl accelerator(device_.type());
  for (std::size_t i = 0; i < count; ++i) all.push_back(accelerator.getStreamFromGlobalPool(device_));
  return all;
}

// libtorch's CUDA headers are not used, so the driver is asked.
std::string gpu_device::card() const {
  const std::string unknown = device_.str();
  if (!device_.is_cuda()) return unknown;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return unknown;
  const auto get = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  const auto name = reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetName"));
  int number = 0;
  char text[256] = "";
  if (get == nullptr || name == nullptr || get(&number, device_.has_index() ? device_.index() : 0) != 0 ||
      name(text, sizeof text, number) != 0)
    return unknown;
  return text;
}

}  // namespace troupe::bench
