// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/mapped_calls_test.cpp, tests/devices/impossible_maps_test.cpp
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/devices/device_map.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::services {

using device_map_ptr = std::shared_ptr<const device_map>;

/// The device maps of a node, for its calls and messages to its peers. Any thread may use device_maps.
///   DV-1  the map of a message is the map that its sender chose, else the map of the settings for the receiving node.
///   DV-2  a map is checked before anything is sent: against the devices of this node, and against the devices that the peer
///         has named.
///   DV-3  the status lists each map of the settings, even to a node that is not up, and says what is wrong with the map.
class device_maps {
 public:
  /// Throws troupe::error (misuse) if a map leads from a device that this node does not have. The directory has to outlive the
  /// maps.
  device_maps(const std::map<std::string, device_names>& of_settings, std::vector<c10::Device> here,
              const membership::peer_directory& directory);

  /// The map for messages to a peer; null if each tensor stays on its device. `chosen`: the map that the sender chose, empty if
  /// tensors stay on their devices; null: the map of the settings.
  device_map_ptr to(const std::string& peer, const device_map_ptr& chosen = nullptr) const;

  /// The devices of the peer that get the tensors; see devices::destinations. Throws troupe::error (unsupported_tensor) if the
  /// map is impossible or lacks a device of a tensor. The text begins with `what`.
  std::vector<c10::Device> destinations(const device_map& map, const std::vector<at::Tensor>& tensors, const std::string& what,
                                        const std::string& peer, node_id id) const;

  /// Why the settings' map to the peer is impossible; empty if the map is possible, or if there is none.
  std::string problem(const std::string& peer, node_id id) const;

  std::vector<device_map_status> status() const;

 private:
  const std::vector<c10::Device> here_;
  const membership::peer_directory& directory_;
  std::map<std::string, device_map_ptr> maps_;
};

}  // namespace troupe::services
