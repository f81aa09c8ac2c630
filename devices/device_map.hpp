// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/device_map_test.cpp, tests/devices/usable_device_test.cpp
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace troupe {

/// Which device of another node gets the tensors of a device of this node, as the device maps of PyTorch's RPC.
///   MP-1  a map leads both ways: no device is in it twice on the same side, so each map has an inverse.
///   MP-2  a device without an index is the first one of its kind ("cuda" is "cuda:0"). The CPU has no index.
///   MP-3  only devices whose tensors travel can be in a map.
///   MP-4  parse(text()) and of(names()) are the same map, in whatever order its entries were added.
class device_map {
 public:
  /// A device of this node, and the device of the other node that it leads to. A text is the name of a device.
  struct entry {
    entry(c10::Device from, c10::Device to) : here(from), there(to) {}
    /// Throws troupe::error (misuse) if a text is the name of no device.
    entry(const std::string& from, const std::string& to);
    c10::Device here;
    c10::Device there;
    bool operator==(const entry&) const = default;
  };

  device_map() = default;
  /// `device_map{{"cuda:0", "cuda:1"}, {"cpu", "cuda:0"}}`. Throws as add() does.
  device_map(std::initializer_list<entry> entries);
  /// Reads "cuda:0=cuda:1,cpu=cuda:0"; blanks may follow a comma. Throws troupe::error (misuse).
  static device_map parse(const std::string& text);

  /// Reads names of devices, as settings::device_maps has them. Throws troupe::error (misuse).
  static device_map of(const std::map<std::string, std::string>& names);

  /// Throws troupe::error (misuse) if one of the two is in the map already on its side, or is a device whose tensors do not
  /// travel.
  void add(entry next);

  bool empty() const noexcept { return entries_.empty(); }
  /// The CPU of this node first, then the others by their index.
  const std::vector<entry>& entries() const noexcept { return entries_; }
  /// Where the device leads; none if the map has no entry for it.
  std::optional<c10::Device> at(c10::Device here) const;
  device_map inverse() const;
  /// The names of the devices, as settings::device_maps has them.
  std::map<std::string, std::string> names() const;
  /// Like "cpu=cuda:0, cuda:0=cuda:1".
  std::string text() const;
  bool operator==(const device_map&) const = default;

 private:
  std::vector<entry> entries_;
};

}  // namespace troupe

namespace troupe::devices {

/// The device with this name, with an index unless it is the CPU. Throws troupe::error (misuse) if the text names no device.
c10::Device device_named(const std::string& text);

/// Why a map can't be used between two nodes that have these devices; empty if it can. `there` may be empty: the other node has
/// not told its devices, and everything is possible there. `other`: the name of the other node, for the text.
std::string why_impossible(const device_map& map, const std::vector<c10::Device>& here, const std::vector<c10::Device>& there,
                           const std::string& other);

/// The devices to which a map leads tensors, one for each tensor; empty if all are the CPU. The CPU leads to the CPU unless the
/// map says another device. Throws troupe::error (unsupported_tensor) for a tensor of another device that the map does not
/// have. The text begins with `what`; `other` is the name of the other node. Pre: the map is not empty.
std::vector<c10::Device> destinations(const std::vector<at::Tensor>& tensors, const device_map& map, const std::string& what,
                                      const std::string& other);

/// Replaces the devices of a result, as the other node has named them, by those of this node: the map in the other direction.
/// Empty `devices`: all tensors were on the CPU. Throws as destinations() does. Pre: the map is not empty.
std::vector<c10::Device> way_back(const std::vector<at::Tensor>& tensors, std::vector<c10::Device> devices,
                                  const device_map& map, const std::string& what, const std::string& other);

/// The device of this name, as in cpu or cuda:0, ready to compute: CUDA's kernels are loaded (devices/cuda_kernels.hpp). If
/// this process has no such device, throws troupe::error(misuse) that lists the devices of the process. After this call with a
/// GPU, a forked process has to call exec before it uses a GPU.
c10::Device usable_device(const std::string& name);

}  // namespace troupe::devices
