// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/arrivals.hpp>

#include <map>
#include <utility>

#include <c10/core/impl/VirtualGuardImpl.h>

#include <troupe/messages/mutex.hpp>

namespace troupe::devices {

namespace {

struct streams {
  checked_mutex mutex;
  std::map<c10::Device, c10::Stream, bool (*)(c10::Device, c10::Device)> all TROUPE_GUARDED_BY(mutex){
    [](c10::Device a, c10::Device b) { return std::pair(a.type(), a.index()) < std::pair(b.type(), b.index()); }};
};

// Never destroyed, because tensors may arrive until the process ends.
streams& arrival_streams() {
  static auto* const them = new streams;
  return *them;
}

}  // namespace

c10::Stream arrival_stream(c10::Device device) {
  auto& known = arrival_streams();
  const checked_lock lock(known.mutex);
  if (const auto found = known.all.find(device); found != known.all.end()) return found->second;
  const c10::impl::VirtualGuardImpl of(device.type());
  return known.all.emplace(device, of.getStreamFromGlobalPool(device)).first->second;
}

bool has_arrivals(c10::Device device) {
  auto& known = arrival_streams();
  const checked_lock lock(known.mutex);
  return known.all.contains(device);
}

host_buffers& arrival_buffers(c10::DeviceType type) {
  static auto* const all = new host_buffers(type, host_buffers::default_budget);
  return *all;
}

}  // namespace troupe::devices
