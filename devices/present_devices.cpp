// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/present_devices.hpp>

#include <algorithm>
#include <utility>

#include <ATen/DeviceAccelerator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace troupe::devices {

namespace {

// Returns whether any accelerator is registered with libtorch. libtorch looks for CUDA devices once in a process, when it is
// first asked for an accelerator, and stores the result. That result would be wrong if CUDA's kernels were loaded later. So
// libtorch is asked only after an accelerator is registered.
bool any_registered() {
  for (const auto type : {c10::kCUDA, c10::kHIP, c10::kXPU, c10::kMTIA, c10::kPrivateUse1, c10::kMPS, c10::kHPU})
    if (c10::impl::hasDeviceGuardImpl(type)) return true;
  return false;
}

}  // namespace

std::optional<c10::DeviceType> accelerator_type() {
  if (!any_registered()) return std::nullopt;
  const auto type = at::accelerator::getAccelerator();
  if (!type || !c10::impl::hasDeviceGuardImpl(*type))
    return std::nullopt;  // libtorch is built for the accelerator, but its kernels are not loaded
  return type;
}

c10::DeviceIndex accelerator_count() {
  const auto type = accelerator_type();
  return type ? c10::impl::getDeviceGuardImpl(*type)->deviceCount() : c10::DeviceIndex{0};
}

std::vector<c10::Device> present_devices() {
  std::vector<c10::Device> devices{c10::Device(c10::kCPU)};
  for (c10::DeviceIndex index = 0; index < accelerator_count(); ++index) devices.emplace_back(*accelerator_type(), index);
  return devices;
}

bool is_present(c10::Device device) {
  if (device.is_cpu()) return true;
  const c10::DeviceIndex index = device.has_index() ? device.index() : c10::DeviceIndex{0};
  return accelerator_type() == device.type() && index < accelerator_count();
}

std::string names_of(const std::vector<c10::Device>& all) {
  std::string names;
  for (const auto& device : all) names += (names.empty() ? "" : ", ") + device.str();
  return names;
}

std::string names_of_accelerators(std::vector<c10::Device> all) {
  const auto key = [](c10::Device device) { return std::pair(device.type(), device.index()); };
  std::sort(all.begin(), all.end(), [&](c10::Device a, c10::Device b) { return key(a) < key(b); });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  all.erase(std::remove(all.begin(), all.end(), c10::Device(c10::kCPU)), all.end());
  return names_of(all);
}

std::string names_of_present_devices() { return names_of(present_devices()); }

}  // namespace troupe::devices
