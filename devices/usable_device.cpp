// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/usable_device.hpp>

#include <optional>

#include <c10/util/Exception.h>

#include <troupe/devices/cuda_kernels.hpp>
#include <troupe/devices/present_devices.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::devices {

c10::Device usable_device(const std::string& name) {
  std::optional<c10::Device> device;
  try {
    device.emplace(name);
  } catch (const c10::Error&) {
    // libtorch knows no device of this name.
  }
  if (device && device->is_cuda()) load_cuda_kernels();
  if (device && is_present(*device)) return *device;
  const bool too_late = device && device->is_cuda() && gpu_count() > 0 && accelerator_type() != c10::kCUDA;
  throw error(errc::misuse,
              "expected a device of this process (" + names_of_present_devices() + "), but it is '" + name + "'; " +
                (too_late ? "the process looked for GPUs before it had loaded CUDA's kernels, so load them when it "
                            "starts (troupe node --cuda)"
                          : "name one of them, or set CUDA_VISIBLE_DEVICES if a GPU is missing"));
}

}  // namespace troupe::devices
