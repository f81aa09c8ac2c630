// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

namespace troupe::devices {

/// Returns the devices of this process: the CPU, then the accelerators. CUDA devices are included only if CUDA's kernels are
/// loaded (devices/cuda_kernels.hpp).
std::vector<c10::Device> present_devices();

c10::DeviceIndex accelerator_count();

/// The type of this process's accelerators; empty if there are none.
std::optional<c10::DeviceType> accelerator_type();

/// True for the CPU and for each accelerator of this process. A device without an index means the first device of its type.
bool is_present(c10::Device device);

/// The names of the devices, such as "cpu, cuda:0, cuda:1".
std::string names_of(const std::vector<c10::Device>& all);
std::string names_of_present_devices();
/// The names of the accelerators in `all`, each once, such as "cuda:0, cuda:1".
std::string names_of_accelerators(std::vector<c10::Device> all);

}  // namespace troupe::devices
