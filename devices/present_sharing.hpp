// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/cuda_sharing_test.cpp, tests/devices/memory_sharing_test.cpp
#pragma once

#include <c10/core/DeviceType.h>

#include <troupe/devices/memory_sharing.hpp>

namespace troupe::devices {

/// How processes share memory of this type of accelerator; null if they do not.
memory_sharing* sharing_of(c10::DeviceType type);

/// For an accelerator that is not CUDA's: says how processes share its memory. `how` has to live until the process ends.
void set_sharing(c10::DeviceType type, memory_sharing* how);

}  // namespace troupe::devices
