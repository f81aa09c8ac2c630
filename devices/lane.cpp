// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/lane.hpp>

#include <ATen/DeviceAccelerator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

namespace troupe::devices {

lane lane_of(torch::autograd::Node& function) {
  const auto stream = function.stream();
  if (!stream) {
    return {cpu_lane, std::nullopt};
  }
  return {{1 + static_cast<std::uint32_t>(stream->device_index())}, stream};
}

std::optional<c10::DeviceType> accelerator_type() {
  const auto type = at::accelerator::getAccelerator();
  if (!type || !c10::impl::hasDeviceGuardImpl(*type)) {
    return std::nullopt;  // libtorch is built for the accelerator, but its kernels are not loaded
  }
  return type;
}

c10::DeviceIndex accelerator_count() {
  const auto type = accelerator_type();
  return type ? c10::impl::getDeviceGuardImpl(*type)->deviceCount() : c10::DeviceIndex{0};
}

std::vector<c10::Device> present_devices() {
  std::vector<c10::Device> devices{c10::Device(c10::kCPU)};
  for (c10::DeviceIndex index = 0; index < accelerator_count(); ++index) {
    devices.emplace_back(*accelerator_type(), index);
  }
  return devices;
}

bool is_present(c10::Device device) {
  if (device.is_cpu()) {
    return true;
  }
  const c10::DeviceIndex index = device.has_index() ? device.index() : c10::DeviceIndex{0};
  return accelerator_type() == device.type() && index < accelerator_count();
}

lane_id lane_of(c10::Device device) {
  TORCH_CHECK(is_present(device), "troupe: expected one of the devices ", names_of_present_devices(), ", got ", device);
  return device.is_cpu() ? cpu_lane : lane_id{1 + static_cast<std::uint32_t>(device.has_index() ? device.index() : 0)};
}

c10::Device device_of(lane_id lane) {
  const auto devices = present_devices();
  TORCH_CHECK(lane.value < devices.size(), "troupe: expected a lane of the devices ", names_of_present_devices(),
              ", got number ", lane.value);
  return devices[lane.value];
}

std::string names_of_present_devices() {
  std::string names;
  for (const auto& device : present_devices()) {
    names += (names.empty() ? "" : ", ") + device.str();
  }
  return names;
}

}  // namespace troupe::devices
