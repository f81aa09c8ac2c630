// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/compressed_tensors_test.cpp, tests/devices/device_codec_test.cpp
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/devices/staging.hpp>
#include <troupe/messages/packed_tensors.hpp>
#include <troupe/messages/tensor_memory.hpp>
#include <troupe/messages/wire_format.hpp>

namespace troupe::devices {

/// To be called when the bytes of staging::to_host_coded() are on the host. Adds packings for the tensors that the devices have
/// compressed. A tensor that its format can't hold is copied to the host exactly: its elements are there when all events of the
/// result have happened.
staged finish(const unfinished& rest, std::vector<at::Tensor>& tensors, std::vector<packing>& packings, staging& stage);

/// The inverse of pack_all() for tensors that are to be on these devices, one for each tensor; then as move_to_devices(). What
/// a device can decompress goes there in few bytes. Throws troupe::error, also as unpack_all().
void unpack_to_devices(std::vector<at::Tensor>& tensors, std::vector<packing>& packings,
                       const std::vector<c10::Device>& devices, const std::string& what, tensor_memory& memory,
                       const made_events& made);
void unpack_to_devices(torch::autograd::variable_list& gradients, std::vector<packing>& packings,
                       const torch::autograd::edge_list& edges, const std::string& what, tensor_memory& memory,
                       const made_events& made);

}  // namespace troupe::devices
