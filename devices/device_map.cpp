// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/device_map.hpp>

#include <algorithm>
#include <utility>

#include <c10/util/Exception.h>

#include <troupe/devices/cuda_kernels.hpp>
#include <troupe/devices/present_devices.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/expect.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe {

namespace {

c10::Device with_index(c10::Device device) {
  if (device.is_cpu()) return c10::Device(c10::kCPU);
  return device.has_index() ? device : c10::Device(device.type(), 0);
}

std::string text_of(const device_map::entry& entry) { return entry.here.str() + "=" + entry.there.str(); }

std::string without_blanks_around(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? std::string() : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

device_map::entry read_entry(const std::string& text, const std::string& whole) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || text.find('=', equals + 1) != std::string::npos)
    throw error(errc::misuse, "the device map '" + whole +
                                "': expected entries 'DEVICE HERE=DEVICE THERE' with a comma between two, such as "
                                "'cuda:0=cuda:1,cpu=cuda:0', got '" +
                                text + "'");
  return {without_blanks_around(text.substr(0, equals)), without_blanks_around(text.substr(equals + 1))};
}

}  // namespace

device_map::entry::entry(const std::string& from, const std::string& to)
    : here(devices::device_named(from)), there(devices::device_named(to)) {}

device_map::device_map(std::initializer_list<entry> entries) {
  for (const auto& each : entries) add(each);
}

device_map device_map::parse(const std::string& text) {
  device_map result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto comma = std::min(text.find(',', begin), text.size());
    result.add(read_entry(without_blanks_around(text.substr(begin, comma - begin)), text));
    begin = comma + 1;
  }
  return result;
}

device_map device_map::of(const std::map<std::string, std::string>& names) {
  device_map result;
  for (const auto& [here, there] : names) result.add({here, there});
  return result;
}

void device_map::add(entry next) {
  next = {with_index(next.here), with_index(next.there)};
  for (const auto& device : {next.here, next.there})
    if (!wire_number(device))
      throw error(errc::misuse,
                  "the device map entry " + text_of(next) + ": tensors of device " + device.str() + " do not travel");
  for (const auto& each : entries_) {
    const bool same_here = each.here == next.here;
    if (!same_here && each.there != next.there) continue;
    throw error(errc::misuse,
                "the device map entries " + text_of(each) + " and " + text_of(next) + ": device " +
                  (same_here ? next.here.str() + " leads to two devices" : next.there.str() + " is the end of two devices") +
                  ", and results and gradients could not be led back; expected each device once on each side");
  }
  const auto order = [](c10::Device device) { return std::pair(static_cast<int>(device.type()), device.index()); };
  const auto position =
    std::find_if(entries_.begin(), entries_.end(), [&](const entry& each) { return order(next.here) < order(each.here); });
  entries_.insert(position, next);
}

std::optional<c10::Device> device_map::at(c10::Device here) const {
  here = with_index(here);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const entry& each) { return each.here == here; });
  return found == entries_.end() ? std::nullopt : std::optional(found->there);
}

device_map device_map::inverse() const {
  device_map result;
  for (const auto& each : entries_) result.add({each.there, each.here});
  return result;
}

std::map<std::string, std::string> device_map::names() const {
  std::map<std::string, std::string> result;
  for (const auto& each : entries_) result.emplace(each.here.str(), each.there.str());
  return result;
}

std::string device_map::text() const {
  std::string result;
  for (const auto& each : entries_) result += (result.empty() ? "" : ", ") + text_of(each);
  return result;
}

}  // namespace troupe

namespace troupe::devices {

namespace {

bool has(const std::vector<c10::Device>& all, c10::Device device) {
  return std::find(all.begin(), all.end(), device) != all.end();
}

std::string name_of(const device_map& map, const std::string& other) {
  return "the device map to node '" + other + "' (" + map.text() + ")";
}

/// Returns the device that the map gives for `device`. Without an entry, returns the CPU for the CPU, and nothing for an
/// accelerator.
std::optional<c10::Device> mapped_device(c10::Device device, const device_map& map) {
  const auto found = map.at(device);
  return found || !device.is_cpu() ? found : std::optional(device);
}

std::vector<c10::Device> none_if_all_are_cpu(std::vector<c10::Device> all) {
  if (std::all_of(all.begin(), all.end(), [](c10::Device each) { return each.is_cpu(); })) all.clear();
  return all;
}

}  // namespace

c10::Device device_named(const std::string& text) {
  std::optional<c10::Device> read;
  try {
    read.emplace(text);
  } catch (const std::exception&) {
    // The error that is thrown below has a clearer text.
  }
  if (!read || read->str() != text)  // libtorch reads an index that is too high as another index
    throw error(errc::misuse, "expected the name of a device such as 'cpu' or 'cuda:0', got '" + text + "'");
  return with_index(*read);
}

std::string why_impossible(const device_map& map, const std::vector<c10::Device>& here, const std::vector<c10::Device>& there,
                           const std::string& other) {
  for (const auto& each : map.entries()) {
    if (!has(here, each.here))
      return name_of(map, other) + " leads from device " + each.here.str() + ", and this node has only " + names_of(here);
    if (!there.empty() && !has(there, each.there))
      return name_of(map, other) + " leads to device " + each.there.str() + ", and node '" + other + "' has only " +
             names_of(there);
  }
  return {};
}

std::vector<c10::Device> destinations(const std::vector<at::Tensor>& tensors, const device_map& map, const std::string& what,
                                      const std::string& other) {
  TROUPE_EXPECT(!map.empty());
  std::vector<c10::Device> result(tensors.size(), c10::Device(c10::kCPU));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) continue;
    const auto to = mapped_device(tensors[i].device(), map);
    if (!to)
      throw error(errc::unsupported_tensor, what + ": tensor " + std::to_string(i) + " is on device " +
                                              tensors[i].device().str() + ", for which " + name_of(map, other) +
                                              " has no entry; add one, or send its cpu()");
    result[i] = *to;
  }
  return none_if_all_are_cpu(std::move(result));
}

std::vector<c10::Device> way_back(const std::vector<at::Tensor>& tensors, std::vector<c10::Device> devices,
                                  const device_map& map, const std::string& what, const std::string& other) {
  TROUPE_EXPECT(!map.empty());
  devices.resize(tensors.size(), c10::Device(c10::kCPU));
  const auto back = map.inverse();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) continue;
    const auto to = mapped_device(devices[i], back);
    if (!to)
      throw error(errc::unsupported_tensor, what + ": tensor " + std::to_string(i) + " is on device " + devices[i].str() +
                                              " of node '" + other + "', to which " + name_of(map, other) +
                                              " leads from no device of this node; add an entry, or return its cpu()");
    devices[i] = *to;
  }
  return none_if_all_are_cpu(std::move(devices));
}

c10::Device usable_device(const std::string& name) {
  std::optional<c10::Device> device;
  try {
    device.emplace(name);
  } catch (const c10::Error&) {
    // libtorch knows no device of this name.
  }
  if (device && device->is_cuda()) load_cuda_kernels();
  if (device && is_present(*device)) return *device;
  const bool too_late = device && device->is_cuda() && gpu_count() > 0 && accelerator_type() != c10::kCUDA;
  throw error(errc::misuse,
              "expected a device of this process (" + names_of_present_devices() + "), but it is '" + name + "'; " +
                (too_late ? "the process looked for GPUs before it had loaded CUDA's kernels, so load them when it "
                            "starts (troupe node --cuda)"
                          : "name one of them, or set CUDA_VISIBLE_DEVICES if a GPU is missing"));
}

}  // namespace troupe::devices
