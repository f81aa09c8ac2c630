// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/present_sharing.hpp>

#include <array>
#include <atomic>
#include <cstddef>

#include <troupe/devices/cuda_sharing.hpp>

namespace troupe::devices {

namespace {

std::atomic<memory_sharing*>& slot(c10::DeviceType type) {
  static std::array<std::atomic<memory_sharing*>, c10::COMPILE_TIME_MAX_DEVICE_TYPES> all{};
  return all.at(static_cast<std::size_t>(type));
}

}  // namespace

memory_sharing* sharing_of(c10::DeviceType type) { return type == c10::kCUDA ? own_cuda_sharing() : slot(type).load(); }

void set_sharing(c10::DeviceType type, memory_sharing* how) { slot(type) = how; }

}  // namespace troupe::devices
