// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/current_streams.hpp>

namespace troupe::engine {

current_streams::current_streams() {
  for (const auto& entry : c10::impl::device_guard_impl_registry) {
    const c10::impl::DeviceGuardImplInterface* const type = entry.load();
    if (type == nullptr || type->type() == c10::DeviceType::CPU || type->type() == c10::DeviceType::Meta) continue;
    for (c10::DeviceIndex i = 0; i < type->deviceCount(); ++i) streams_.push_back({type, type->getStream({type->type(), i})});
    if (type->deviceCount() > 0) devices_.push_back({type, type->getDevice()});
  }
}

void current_streams::set() const noexcept {
  for (const auto& [type, current] : streams_) type->exchangeStream(current);
  for (const auto& [type, current] : devices_) type->uncheckedSetDevice(current);
}

}  // namespace troupe::engine
