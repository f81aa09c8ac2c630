// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/device_maps.hpp>

#include <utility>

#include <troupe/messages/errors.hpp>

namespace troupe::services {

device_maps::device_maps(const std::map<std::string, device_names>& of_settings, std::vector<c10::Device> here,
                         const membership::peer_directory& directory)
    : here_(std::move(here)), directory_(directory) {
  for (const auto& [peer, names] : of_settings) {
    const auto map = device_map::of(names);
    if (const auto why = devices::why_impossible(map, here_, {}, peer); !why.empty())
      throw error(errc::misuse, "settings: " + why + "; mend the setting device_maps (--device-map)");
    if (!map.empty()) maps_.emplace(peer, std::make_shared<const device_map>(map));
  }
}

device_map_ptr device_maps::to(const std::string& peer, const device_map_ptr& chosen) const {
  if (chosen) return chosen->empty() ? nullptr : chosen;
  const auto found = maps_.find(peer);
  return found == maps_.end() ? nullptr : found->second;
}

std::vector<c10::Device> device_maps::destinations(const device_map& map, const std::vector<at::Tensor>& tensors,
                                                   const std::string& what, const std::string& peer, node_id id) const {
  if (const auto why = devices::why_impossible(map, here_, directory_.devices(id), peer); !why.empty())
    throw error(errc::unsupported_tensor, what + ": " + why + "; mend the map");
  return devices::destinations(tensors, map, what, peer);
}

std::string device_maps::problem(const std::string& peer, node_id id) const {
  const auto map = to(peer);
  return map ? devices::why_impossible(*map, here_, directory_.devices(id), peer) : std::string();
}

std::vector<device_map_status> device_maps::status() const {
  std::vector<device_map_status> result;
  for (const auto& [peer, map] : maps_) {
    const auto id = directory_.find(peer);
    result.push_back({peer, map->text(), id ? problem(peer, *id) : "no node '" + peer + "' is connected to this node"});
  }
  return result;
}

}  // namespace troupe::services
