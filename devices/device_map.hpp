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

/// Says which device of another node gets the tensors of each device of this node, like the device maps of PyTorch's RPC.
///   MP-1  a map can be inverted: a device is at most once on each side of the map.
///   MP-2  a device without an index is the first one of its kind ("cuda" is "cuda:0"). The CPU has no index.
///   MP-3  only devices whose tensors travel can be in a map.
///   MP-4  parse(text()) and of(names()) give the same map again, in whatever order the entries were added.
class device_map {
 public:
  /// A device of this node, and the device of the other node to which its tensors go. Texts are names of devices.
  struct entry {
    entry(c10::Device from, c10::Device to) : here(from), there(to) {}
    /// Throws troupe::error (misuse) if a text is the name of no device.
    entry(const std::string& from, const std::string& to);
    c10::Device here;
    c10::Device there;
    bool operator==(const entry&) const = default;
  };

  device_map() = default;
  /// Example: `device_map{{"cuda:0", "cuda:1"}, {"cpu", "cuda:0"}}`. Throws as add() does.
  device_map(std::initializer_list<entry> entries);
  /// Reads "cuda:0=cuda:1,cpu=cuda:0"; blanks may follow a comma. Throws troupe::error (misuse).
  static device_map parse(const std::string& text);

  /// Reads names of devices, as settings::device_maps has them. Throws troupe::error (misuse).
  static device_map of(const std::map<std::string, std::string>& names);

  /// Throws troupe::error (misuse) if a device of the entry is in the map already on the same side, or if its tensors do not
  /// travel.
  void add(entry next);

  bool empty() const noexcept { return entries_.empty(); }
  /// Sorted by the device of this node: the CPU first, then accelerators by type and index.
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

/// Why a map can't be used between two nodes that have these devices; empty if it can. Empty `there`: the other node has not
/// told its devices, so every device counts as possible. `other`: the name of the other node, for the text.
std::string why_impossible(const device_map& map, const std::vector<c10::Device>& here, const std::vector<c10::Device>& there,
                           const std::string& other);

/// The devices to which a map leads tensors, one for each tensor; empty if all are the CPU. The CPU leads to the CPU unless the
/// map says another device. Throws troupe::error (unsupported_tensor) for a tensor on an accelerator that the map does not
/// have. The text begins with `what`; `other` is the name of the other node. Pre: the map is not empty.
std::vector<c10::Device> destinations(const std::vector<at::Tensor>& tensors, const device_map& map, const std::string& what,
                                      const std::string& other);

/// Leads a result back: replaces each device of the other node by the device of this node that the map leads from. `devices`:
/// those of the other node, one for each tensor; empty: all tensors were on the CPU. Throws as destinations() does. Pre: the
/// map is not empty.
std::vector<c10::Device> way_back(const std::vector<at::Tensor>& tensors, std::vector<c10::Device> devices,
                                  const device_map& map, const std::string& what, const std::string& other);

/// The device of this name, as in cpu or cuda:0, ready to compute: CUDA's kernels are loaded (devices/cuda_kernels.hpp). If
/// this process has no such device, throws troupe::error(misuse) that lists the devices of the process. After this call with a
/// GPU, a forked process has to call exec before it uses a GPU.
c10::Device usable_device(const std::string& name);

}  // namespace troupe::devices
