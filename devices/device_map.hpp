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

/// Maps devices of this node to devices of another node, like the device maps of PyTorch's RPC. A tensor on a device of this
/// node arrives on the mapped device of the other node.
///   MP-1  a map can be inverted, because a device is at most once on each side of the map.
///   MP-2  a device without an index means the first device of its type ("cuda" is "cuda:0"). The CPU has no index.
///   MP-3  only devices whose tensors can be sent to another node may be in a map.
///   MP-4  parse(text()) and of(names()) return a map that is equal to this map. The order in which entries were added does not
///         matter.
class device_map {
 public:
  /// A device of this node (`here`), and the device of the other node to which its tensors go (`there`).
  struct entry {
    entry(c10::Device from, c10::Device to) : here(from), there(to) {}
    /// `from`, `to`: names of devices. Throws troupe::error (misuse) if a text is not the name of a device.
    entry(const std::string& from, const std::string& to);
    c10::Device here;
    c10::Device there;
    bool operator==(const entry&) const = default;
  };

  device_map() = default;
  /// Example: `device_map{{"cuda:0", "cuda:1"}, {"cpu", "cuda:0"}}`. Throws as add() does.
  device_map(std::initializer_list<entry> entries);
  /// Reads a text such as "cuda:0=cuda:1,cpu=cuda:0"; blanks may follow a comma. Throws troupe::error (misuse) if the text is
  /// not a valid map.
  static device_map parse(const std::string& text);

  /// Makes a map from names of devices, in the form of settings::device_maps. Throws troupe::error (misuse) if the names are
  /// not a valid map.
  static device_map of(const std::map<std::string, std::string>& names);

  /// Adds an entry. Throws troupe::error (misuse) if one of its devices is already on the same side of the map. Also throws it
  /// if tensors of one of its devices can't be sent.
  void add(entry next);

  bool empty() const noexcept { return entries_.empty(); }
  /// The entries, sorted by the device of this node: the CPU first, then accelerators by type and index.
  const std::vector<entry>& entries() const noexcept { return entries_; }
  /// The device of the other node to which tensors of `here` go; none if the map has no entry for `here`.
  std::optional<c10::Device> at(c10::Device here) const;
  device_map inverse() const;
  /// The names of the devices, in the form of settings::device_maps: devices of this node are keys, devices of the other node
  /// are values.
  std::map<std::string, std::string> names() const;
  /// The map as a text such as "cpu=cuda:0, cuda:0=cuda:1".
  std::string text() const;
  bool operator==(const device_map&) const = default;

 private:
  std::vector<entry> entries_;
};

}  // namespace troupe

namespace troupe::devices {

/// Returns the device with this name. The device has an index, unless it is the CPU. Throws troupe::error (misuse) if the text
/// is not the name of a device.
c10::Device device_named(const std::string& text);

/// Returns why this map can't be used from this node, with the devices `here`, to the node named `other`, with the devices
/// `there`. Returns an empty text if the map can be used. If `there` is empty, the devices of the other node are not known, and
/// any device is accepted.
std::string why_impossible(const device_map& map, const std::vector<c10::Device>& here, const std::vector<c10::Device>& there,
                           const std::string& other);

/// Returns for each tensor the device of the node named `other` that the map gives; empty if all these devices are the CPU. A
/// CPU tensor goes to the CPU if the map has no entry for the CPU. Throws troupe::error (unsupported_tensor) for a tensor on an
/// accelerator without an entry in the map. The error text begins with `what`. Pre: the map is not empty.
std::vector<c10::Device> destinations(const std::vector<at::Tensor>& tensors, const device_map& map, const std::string& what,
                                      const std::string& other);

/// Returns for each tensor of a result the device of this node that the inverse map gives; empty if all these devices are the
/// CPU. `devices`: the device of each tensor on the node named `other`; empty if all tensors were on the CPU. Throws as
/// destinations() does. Pre: the map is not empty.
std::vector<c10::Device> way_back(const std::vector<at::Tensor>& tensors, std::vector<c10::Device> devices,
                                  const device_map& map, const std::string& what, const std::string& other);

/// Returns the device with this name, such as `cpu` or `cuda:0`. For a CUDA device, loads CUDA's kernels first
/// (devices/cuda_kernels.hpp). Throws troupe::error(misuse) that lists the devices of this process if the process has no device
/// with this name. After a call with the name of a GPU, a forked child has to call exec before it uses a GPU.
c10::Device usable_device(const std::string& name);

}  // namespace troupe::devices
