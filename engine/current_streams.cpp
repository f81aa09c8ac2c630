// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/current_streams.hpp>

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>

namespace troupe::engine {

namespace {

// Whether the process has a context on the device. To make a device without a context current would create a context, which
// takes hundreds of megabytes of a GPU.
bool has_context(c10::Device device) {
  return at::globalContext().getAcceleratorHooksInterface(device.type()).hasPrimaryContext(device.index());
}

}  // namespace

current_streams::current_streams() {
  for (const auto& entry : c10::impl::device_guard_impl_registry) {
    const c10::impl::DeviceGuardImplInterface* const type = entry.load();
    if (type == nullptr || !at::accelerator::isAccelerator(type->type())) continue;
    bool any = false;
    for (c10::DeviceIndex i = 0; i < type->deviceCount(); ++i) {
      if (!has_context({type->type(), i})) continue;
      streams_.push_back({type, type->getStream({type->type(), i})});
      any = true;
    }
    if (any && has_context(type->getDevice())) devices_.push_back({type, type->getDevice()});
  }
}

void current_streams::set() const noexcept {
  for (const auto& [type, current] : streams_) type->exchangeStream(current);
  for (const auto& [type, current] : devices_) type->uncheckedSetDevice(current);
}

}  // namespace troupe::engine
