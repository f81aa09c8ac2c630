// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <torch/csrc/autograd/function.h>

/// Where functions of a graph run: on the CPU, or on one of the accelerators of this process.
///   LA-1  lane 0 is the CPU, lane 1 + i is accelerator i.
///   LA-2  a function is in the lane in which libtorch's engine would run it. A function on a device that computes nothing
///         (meta) is on the CPU.
namespace troupe::devices {

struct lane_id {
  std::uint32_t value = 0;
  auto operator<=>(const lane_id&) const = default;
};
inline constexpr lane_id cpu_lane{0};

struct lane {
  lane_id id;
  std::optional<c10::Stream> stream;  // stream of the function's forward; none on the CPU
};

lane lane_of(torch::autograd::Node& function);

/// The devices of this process by lane: the CPU, then the accelerators. CUDA devices appear once CUDA's kernels are loaded
/// (devices/cuda_kernels.hpp).
std::vector<c10::Device> present_devices();

/// The number of accelerators.
c10::DeviceIndex accelerator_count();

/// The type of the accelerators; none if there are none.
std::optional<c10::DeviceType> accelerator_type();

/// True for the CPU and for each accelerator of this process. A device without an index stands for the first one.
bool is_present(c10::Device device);

/// The lane of a device. Throws c10::Error, which names the present devices, if the device is not present.
lane_id lane_of(c10::Device device);
c10::Device device_of(lane_id lane);

/// The present devices as text, like "cpu, cuda:0, cuda:1".
std::string names_of_present_devices();

}  // namespace troupe::devices
