// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/compressed_tensors.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <troupe/devices/device_codec.hpp>
#include <troupe/engine/device_events.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::devices {

namespace {

/// `device_of`: gives the device for the number of a tensor. `move` moves all tensors to their devices.
template <class DeviceOf, class Move>
void unpack_to(std::vector<at::Tensor>& tensors, std::vector<packing>& packings, tensor_memory& memory, const std::string& what,
               const DeviceOf& device_of, const Move& move) {
  check_packings(tensors, packings);
  std::vector<std::pair<std::size_t, packing>> on_device;
  for (std::size_t i = 0; i < packings.size(); ++i)
    if (is_decodable(packings[i], device_of(i))) on_device.emplace_back(i, std::exchange(packings[i], packing{}));
  unpack_all(tensors, packings, memory);
  move();
  const c10::AutoGradMode no_grad(false);
  for (const auto& [i, how] : on_device) {
    try {
      tensors[i] = decode(tensors[i], how);
    } catch (const c10::Error& failed) {
      throw error(errc::function_failed, what + "[" + std::to_string(i) + "] could not be decompressed on " +
                                           tensors[i].device().str() + ": " + failed.what_without_backtrace());
    }
  }
}

}  // namespace

staged finish(const unfinished& rest, std::vector<at::Tensor>& tensors, std::vector<packing>& packings, staging& stage) {
  staged result;
  for (const auto& each : rest.coded) {
    auto how = each.how;
    std::uint32_t largest = 0;
    if (each.largest.defined()) std::memcpy(&largest, each.largest.const_data_ptr(), sizeof largest);
    if (complete(how, each.bytes, static_cast<std::uint64_t>(each.exact.numel()), largest)) {
      packings.resize(tensors.size());
      packings[each.index] = std::move(how);
      continue;
    }
    const auto device = each.exact.device();  // on its own stream: the copy waits for nothing else
    const c10::StreamGuard own(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device));
    engine::record_use(each.exact, own.current_stream());
    const auto one = stage.to_host({each.exact});
    tensors[each.index] = one.tensors[0];
    result.events.insert(result.events.end(), one.events.begin(), one.events.end());
  }
  return result;
}

void unpack_to_devices(std::vector<at::Tensor>& tensors, std::vector<packing>& packings,
                       const std::vector<c10::Device>& devices, const std::string& what, tensor_memory& memory,
                       const made_events& made) {
  const auto device_of = [&](std::size_t i) { return i < devices.size() ? devices[i] : c10::Device(c10::kCPU); };
  unpack_to(tensors, packings, memory, what, device_of, [&] { move_to_devices(tensors, devices, what, made); });
}

void unpack_to_devices(torch::autograd::variable_list& gradients, std::vector<packing>& packings,
                       const torch::autograd::edge_list& edges, const std::string& what, tensor_memory& memory,
                       const made_events& made) {
  const auto device_of = [&](std::size_t i) { return device_behind(edges, i).value_or(c10::Device(c10::kCPU)); };
  unpack_to(gradients, packings, memory, what, device_of, [&] { move_to_devices(gradients, edges, what, made); });
}

}  // namespace troupe::devices
