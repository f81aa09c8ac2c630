// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/staging_test.cpp
#pragma once

#include <cstddef>

#include <c10/core/Device.h>
#include <c10/core/DeviceType.h>
#include <c10/core/Stream.h>

#include <troupe/devices/host_buffers.hpp>

namespace troupe::devices {

/// Larger tensors are copied between host and device in parts of so many bytes.
inline constexpr std::size_t part_bytes = std::size_t{4} << 20;

/// Returns the stream on which arriving tensors are copied to `device`. All threads use the same stream.
c10::Stream arrival_stream(c10::Device device);

/// Whether a tensor was copied to this device on its arrival before.
bool has_arrivals(c10::Device device);

/// The process's page-locked buffers for tensors that arrive. The pool is never destroyed, because tensors may arrive until the
/// process ends.
host_buffers& arrival_buffers(c10::DeviceType type);

}  // namespace troupe::devices
