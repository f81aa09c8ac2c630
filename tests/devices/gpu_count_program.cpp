// SPDX-License-Identifier: BSD-3-Clause
// Without an argument the exit status is the number of GPUs that the driver in LD_LIBRARY_PATH reports. With the name of a device it says
// what became of usable_device(): 0: the device; 1: the device, and libtorch_cuda is loaded; 2: the process had looked for GPUs too early; 3: no
// such device; 4: another error.
#include <dlfcn.h>
#include <string>

#include <troupe/devices/cuda_kernels.hpp>
#include <troupe/devices/device_map.hpp>
#include <troupe/devices/present_devices.hpp>
#include <troupe/messages/errors.hpp>

int main(int argc, char** argv) {
  using namespace troupe;
  if (argc < 2) return devices::gpu_count();
  try {
    devices::usable_device(argv[1]);
    return dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD) == nullptr ? 0 : 1;
  } catch (const error& refused) {
    const std::string text = refused.what();
    if (text.find("so load them when it starts") != std::string::npos) return 2;
    return text.find("name one of them, or set CUDA_VISIBLE_DEVICES") != std::string::npos ? 3 : 4;
  }
}
