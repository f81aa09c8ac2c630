// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/arrivals.hpp>

#include <map>

#include <c10/core/impl/VirtualGuardImpl.h>

#include <troupe/messages/mutex.hpp>

namespace troupe::devices {

c10::Stream arrival_stream(c10::Device device) {
  static checked_mutex mutex;
  static auto* const all TROUPE_GUARDED_BY(mutex) = new std::map<c10::DeviceIndex, c10::Stream>;
  const checked_lock lock(mutex);
  const auto known = all->find(device.index());
  if (known != all->end()) return known->second;
  return all->emplace(device.index(), c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device)).first->second;
}

host_buffers& arrival_buffers(c10::DeviceType type) {
  static auto* const all = new host_buffers(type, host_buffers::default_budget);
  return *all;
}

}  // namespace troupe::devices
