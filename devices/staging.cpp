// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/staging.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <troupe/devices/arrivals.hpp>
#include <troupe/devices/device_codec.hpp>
#include <troupe/devices/landing.hpp>
#include <troupe/devices/present_devices.hpp>
#include <troupe/devices/present_sharing.hpp>
#include <troupe/devices/tensor_packing.hpp>
#include <troupe/engine/device_events.hpp>
#include <troupe/engine/torch_version.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/tensor_codec.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe::devices {

namespace {

// Returns the tensor without gaps and overlaps in memory, and without lazy conjugation or negation. Copies only if needed.
at::Tensor dense(const at::Tensor& tensor) { return travelling_form(tensor.detach()); }

// Throws a c10::Error if the current stream of the device is in a graph capture. libtorch says so from 2.13 on; before, the
// device refuses what is queued.
void expect_no_capture([[maybe_unused]] c10::Device device) {
#if TROUPE_TORCH_HAS_CAPTURE_CHECKS
  const c10::impl::VirtualGuardImpl guard(device.type());
  TORCH_CHECK(!guard.isStreamCapturing(guard.getStream(device)), "the current stream of ", device,
              " is in a graph capture, which can't record messages between nodes; call outside of the capture");
#endif
}

void expect_no_capture(const std::vector<at::Tensor>& tensors) {
  std::optional<c10::Device> last;
  for (const auto& each : tensors)
    if (is_stageable(each) && each.device() != last) expect_no_capture(*(last = each.device()));
}

at::Tensor empty_on(c10::Device device, const at::Tensor& like) {
  return at::empty_strided(like.sizes(), like.strides(), like.options().device(device));
}

// The bytes of a dense tensor, in the order that they have in memory. Keeps nothing alive.
at::Tensor bytes_of(const at::Tensor& tensor) {
  return bytes_at(const_cast<void*>(tensor.const_data_ptr()), tensor.nbytes(), tensor.device());
}

at::Tensor copied_to(const at::Tensor& tensor, c10::Device device) {
  const auto current_stream = [](c10::Device of) { return c10::impl::VirtualGuardImpl(of.type()).getStream(of); };
  if (!tensor.is_cpu()) engine::record_use(tensor, current_stream(tensor.device()));
  if (tensor.device() == device) return tensor;
  const c10::DeviceGuard guard(device);
  if (tensor.layout() != at::kStrided) return tensor.to(device);
  if (!tensor.is_cpu() || !tensor.is_non_overlapping_and_dense() || tensor.is_conj() || tensor.is_neg()) {
    at::Tensor there = empty_on(device, tensor);
    there.copy_(tensor);
    return there;
  }
  if (auto* const landed = landing::of(tensor.storage()))
    if (auto there = landed->hand_over(tensor, device); there.defined()) return there;
  const c10::Stream current = current_stream(device);
  const c10::StreamGuard own(arrival_stream(device));
  at::Tensor there = empty_on(device, tensor);
  const auto from = bytes_of(tensor);
  const auto to = bytes_of(there);
  for (std::int64_t begin = 0; begin < from.numel();) {
    const auto end = std::min<std::int64_t>(begin + part_bytes, from.numel());
    const auto part = from.slice(0, begin, end);
    const auto copied = std::make_shared<c10::Event>(device.type());
    const at::Tensor locked = arrival_buffers(device.type()).allocate(part, copied);
    locked.copy_(part);
    to.slice(0, begin, end).copy_(locked, true);
    copied->record(own.current_stream());
    if (end == from.numel()) copied->block(current);
    begin = end;
  }
  engine::record_use(there, current);
  return there;
}

/// Calls `copy`. If a device fails, the error names the tensor by `what` and `index`.
template <class Copy>
auto named(const std::string& what, std::size_t index, c10::Device device, const Copy& copy) {
  try {
    return copy();
  } catch (const c10::Error& failed) {
    throw error(errc::function_failed, what + "[" + std::to_string(index) + "] could not be copied to " + device.str() + ": " +
                                         failed.what_without_backtrace());
  }
}

at::Tensor moved(const at::Tensor& tensor, c10::Device device, const std::string& what, std::size_t index) {
  return named(what, index, device, [&] { return copied_to(tensor, device); });
}

using numbers_by_device = std::vector<std::pair<c10::Device, std::vector<std::size_t>>>;

std::vector<std::size_t>& numbers_for(c10::Device device, numbers_by_device& all) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.first == device; });
  return found != all.end() ? found->second : all.emplace_back(device, std::vector<std::size_t>{}).second;
}

bool is_small(const at::Tensor& tensor) { return tensor.nbytes() < least_offered; }

// Whether the tensor, which has arrived, may be copied to a device together with others.
bool is_packable(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu() && tensor.layout() == at::kStrided && !tensor.is_nested() &&
         tensor.is_non_overlapping_and_dense() && !tensor.is_conj() && !tensor.is_neg() && is_small(tensor);
}

// A tensor like `like` whose elements begin at byte `offset` of `host`. Keeps `host`.
at::Tensor part_of(const at::Tensor& host, std::int64_t offset, const at::Tensor& like) {
  return at::from_blob(
    static_cast<char*>(host.mutable_data_ptr()) + offset, like.sizes(), like.strides(), [host](void*) {},
    like.options().device(at::kCPU));
}

/// An event of this process alone, on the current stream of the device.
class own_event final : public shared_event {
 public:
  explicit own_event(c10::Device device) : event_(device.type()) {
    const c10::DeviceGuard guard(device);
    event_.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  }
  void block(const c10::Stream& stream) override { event_.block(stream); }
  std::string handle() const override { return {}; }

 private:
  c10::Event event_;
};

/// Copies tensors that have arrived to a device, in one copy.
std::vector<at::Tensor> copied_together(const std::vector<at::Tensor>& tensors, c10::Device device) {
  const c10::DeviceGuard guard(device);
  const c10::Stream current = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  packed_tensors packed{{}, packed_offsets(tensors)};
  {
    const c10::StreamGuard own(arrival_stream(device));
    packed.bytes = at::empty({packed.offsets.back()}, at::device(device).dtype(at::kByte));
    packed.offsets.pop_back();
    const auto copied = std::make_shared<c10::Event>(device.type());
    const at::Tensor locked = arrival_buffers(device.type()).allocate(packed.bytes, copied);
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].numel() != 0)
        std::memcpy(static_cast<char*>(locked.mutable_data_ptr()) + packed.offsets[i], tensors[i].const_data_ptr(),
                    tensors[i].nbytes());
    packed.bytes.copy_(locked, true);
    copied->record(own.current_stream());
    copied->block(current);
    engine::record_use(packed.bytes, current);
  }
  std::vector<at::Tensor> result;
  for (const auto& each : tensors) result.push_back(empty_on(device, each));
  unpack(packed, result, kernels_for(device));
  return result;
}

}  // namespace

bool staged::offers(const at::Tensor& tensor) const {
  return !made.empty() && (for_itself ? is_stageable(tensor) : is_offerable(tensor));
}

bool staged::ready() const {
  return std::all_of(events.begin(), events.end(), [](const auto& each) { return each->query(); });
}

void staged::wait() const {
  for (const auto& each : events) each->synchronize();
}

bool is_stageable(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == accelerator_type() && tensor.layout() == at::kStrided &&
         !tensor.is_nested() && !tensor.is_quantized() && !tensor._is_zerotensor() && !at::isTensorSubclassLike(tensor) &&
         !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides() && wire_number(tensor.device());
}

bool is_offerable(const at::Tensor& tensor) {
  return is_stageable(tensor) && tensor.nbytes() >= least_offered && tensor.scalar_type() != at::kBool;
}

staged staging::to_host(std::vector<at::Tensor> tensors, bool offers, bool in_parts) {
  staged result{std::move(tensors), {}, {}, {}, {}, false, {}};
  expect_no_capture(result.tensors);
  if (offers) stay(result);
  const auto stays = [&](c10::Device device) {
    return std::any_of(result.made.begin(), result.made.end(), [&](const auto& each) { return each.first == device; });
  };
  numbers_by_device copied;
  for (std::size_t i = 0; i < result.tensors.size(); ++i) {
    const at::Tensor& tensor = result.tensors[i];
    if (!tensor.defined() || tensor.is_cpu() || !is_stageable(tensor)) continue;
    const c10::Device device = tensor.device();
    result.devices.resize(result.tensors.size(), c10::Device(c10::kCPU));
    result.devices[i] = device;
    if (!stays(device) || !is_offerable(tensor)) numbers_for(device, copied).push_back(i);
  }
  for (const auto& [device, which] : copied) copy(result, device, which, in_parts);
  return result;
}

staged staging::to_host_coded(std::vector<at::Tensor> tensors, wire_format format, const residual_line& residuals) {
  expect_no_capture(tensors);
  if (format != wire_format::int8 || residuals.book == nullptr) return coded(std::move(tensors), format, {});
  std::vector<c10::Stream> callers;
  std::vector<c10::Stream> coding;
  for (const auto& each : tensors) {
    if (!is_stageable(each)) continue;
    const auto own = coding_stream(each.device());
    engine::record_use(each, own);
    if (std::find(coding.begin(), coding.end(), own) != coding.end()) continue;
    coding.push_back(own);
    callers.push_back(c10::impl::VirtualGuardImpl(each.device().type()).getStream(each.device()));
  }
  const auto wait = [](const c10::Stream& who, const c10::Stream& for_whom) {
    c10::Event reached(for_whom.device_type());
    reached.record(for_whom);
    reached.block(who);
  };
  for (std::size_t i = 0; i < coding.size(); ++i) wait(coding[i], callers[i]);
  staged result;
  {
    const c10::MultiStreamGuard own(coding);
    result = coded(std::move(tensors), format, residuals);
  }
  for (std::size_t i = 0; i < coding.size(); ++i) wait(callers[i], coding[i]);
  return result;
}

/// to_host_coded(), on the current streams.
staged staging::coded(std::vector<at::Tensor> tensors, wire_format format, const residual_line& residuals) {
  const c10::AutoGradMode no_grad(false);
  auto rest = std::make_shared<unfinished>();
  const auto count = tensors.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_stageable(tensors[i]) || !is_codable(tensors[i], format)) continue;
    const c10::DeviceGuard guard(tensors[i].device());
    auto exact = dense(tensors[i]);
    if (exact.is_alias_of(tensors[i])) exact = exact.clone();  // the program may overwrite the tensor
    const residual_key key{residuals.peer, residuals.call_key, i};
    at::Tensor residual;
    if (residuals.book != nullptr) {
      residual = residuals.book->take(key, exact);
      if (!residual.defined()) residual = at::zeros({exact.numel()}, exact.options());
    }
    rest->coded.push_back(encode(i, exact, format, residual.defined() ? &residual : nullptr));
    if (residual.defined()) residuals.book->give(key, exact, std::move(residual));
    tensors[i] = rest->coded.back().bytes;
    if (rest->coded.back().largest.defined()) tensors.push_back(rest->coded.back().largest);
  }
  auto result = to_host(std::move(tensors));
  auto largest = result.tensors.begin() + static_cast<std::ptrdiff_t>(count);
  for (auto& each : rest->coded) {
    each.bytes = result.tensors[each.index];
    if (each.largest.defined()) each.largest = *largest++;
  }
  result.tensors.resize(count);
  if (!result.devices.empty()) result.devices.resize(count, c10::Device(c10::kCPU));
  if (!rest->coded.empty()) result.rest = std::move(rest);
  return result;
}

c10::Stream staging::coding_stream(c10::Device device) {
  const checked_lock lock(mutex_);
  const auto known = coding_streams_.find(device.index());
  if (known != coding_streams_.end()) return known->second;
  return coding_streams_.emplace(device.index(), c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device))
    .first->second;
}

/// Copies some of the tensors, all of one device, to the host.
void staging::copy(staged& all, c10::Device from, const std::vector<std::size_t>& which, bool in_parts) {
  const c10::DeviceGuard guard(from);
  const auto filled = std::make_shared<c10::Event>(from.type());
  bool is_needed = false;
  const auto copied = [&](const at::Tensor& source) {
    is_needed = true;
    at::Tensor host = buffers(from.type()).allocate(source, filled);
    host.copy_(source, true);
    return host;
  };
  std::vector<at::Tensor> small;
  for (const auto i : which)
    if (is_small(all.tensors[i])) small.push_back(dense(all.tensors[i]));
  if (small.size() > 1) {
    const auto packed = pack(small, kernels_for(from));
    const auto host = copied(packed.bytes);
    for (std::size_t i = 0; i < small.size(); ++i) small[i] = part_of(host, packed.offsets[i], small[i]);
  } else {
    for (auto& each : small) each = copied(each);
  }
  auto next = small.begin();
  for (const auto i : which) {
    at::Tensor& tensor = all.tensors[i];
    if (is_small(tensor)) {
      tensor = std::move(*next++);
    } else if (in_parts && tensor.nbytes() > part_bytes) {
      if (!all.rest) all.rest = std::make_shared<unfinished>();
      all.rest->coming.push_back(begin_copy(dense(tensor)));
      tensor = all.rest->coming.back().host;
    } else {
      tensor = copied(dense(tensor));
    }
  }
  if (!is_needed) return;
  filled->record(c10::impl::VirtualGuardImpl(from.type()).getStream(from));
  all.events.push_back(filled);
}

/// Queues the copy of a dense tensor to the host, in parts.
copy_in_parts staging::begin_copy(const at::Tensor& source) {
  const c10::Device device = source.device();
  const auto stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  const auto filled = std::make_shared<c10::Event>(device.type());
  copy_in_parts result;
  result.host = buffers(device.type()).allocate(source, filled);
  const auto from = bytes_of(source);
  const auto to = bytes_of(result.host);
  for (std::int64_t begin = 0; begin < from.numel();) {
    const auto end = std::min<std::int64_t>(begin + part_bytes, from.numel());
    to.slice(0, begin, end).copy_(from.slice(0, begin, end), true);
    const auto copied = end == from.numel() ? filled : std::make_shared<c10::Event>(device.type());
    copied->record(stream);
    result.parts.push_back({static_cast<std::uint64_t>(end), copied});
    begin = end;
  }
  return result;
}

/// Makes the tensors that are offered dense, and records an event on each of their devices.
void staging::stay(staged& all) {
  auto* const sharing = accelerator_type() ? sharing_of(*accelerator_type()) : nullptr;
  if (sharing == nullptr) return;
  std::vector<c10::Device> devices;
  for (auto& tensor : all.tensors) {
    if (!is_offerable(tensor)) continue;
    const c10::DeviceGuard guard(tensor.device());
    tensor = dense(tensor);
    if (std::find(devices.begin(), devices.end(), tensor.device()) == devices.end()) devices.push_back(tensor.device());
  }
  for (const auto& device : devices) {
    try {
      const c10::DeviceGuard guard(device);
      all.made.emplace_back(device, sharing->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device)));
    } catch (const c10::Error& why) {  // the tensors of this device are copied to the host
      all.not_offered = device.str() + ": " + why.what_without_backtrace();
    }
  }
}

staged staging::for_itself(std::vector<at::Tensor> tensors) {
  expect_no_capture(tensors);
  staged result{std::move(tensors), {}, {}, {}, {}, true, {}};
  for (std::size_t i = 0; i < result.tensors.size(); ++i) {
    at::Tensor& tensor = result.tensors[i];
    if (!is_stageable(tensor)) continue;
    const c10::DeviceGuard guard(tensor.device());
    tensor = dense(tensor);
    result.devices.resize(result.tensors.size(), c10::Device(c10::kCPU));
    result.devices[i] = tensor.device();
  }
  for (const auto& device : result.devices) {
    const bool is_new =
      std::none_of(result.made.begin(), result.made.end(), [&](const auto& each) { return each.first == device; });
    if (!device.is_cpu() && is_new) result.made.emplace_back(device, std::make_shared<own_event>(device));
  }
  return result;
}

staged staging::after(shared_event& made, c10::Device device) {
  const c10::StreamGuard own(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device));
  made.block(own.current_stream());
  staged result;
  result.events.push_back(std::make_shared<c10::Event>(device.type()));
  result.events[0]->record(own.current_stream());
  return result;
}

staged staging::to_host_after(const at::Tensor& tensor, shared_event& made) {
  const c10::Device device = tensor.device();
  const c10::StreamGuard own(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device));
  made.block(own.current_stream());
  engine::record_use(tensor, own.current_stream());
  return to_host({tensor});
}

host_buffers& staging::buffers(c10::DeviceType type) {
  const checked_lock lock(mutex_);
  if (!buffers_) buffers_.emplace(type, budget_);
  return *buffers_;
}

host_buffers::usage staging::used() const {
  const checked_lock lock(mutex_);
  return buffers_ ? buffers_->used() : host_buffers::usage{};
}

namespace {

/// Moves tensors to the devices that `device_of` gives for their numbers; nothing: the tensor stays.
template <class DeviceOf>
void move_all(std::vector<at::Tensor>& tensors, const DeviceOf& device_of, const std::string& what, const made_events& made) {
  const c10::AutoGradMode no_grad(false);
  for (const auto& [device, event] : made) event->block(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  numbers_by_device small;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::optional<c10::Device> device = tensors[i].defined() ? device_of(i) : std::nullopt;
    if (!device || (device->is_cpu() && tensors[i].is_cpu())) {
      leave_landing(tensors[i]);
      continue;
    }
    if (!device->is_cpu()) named(what, i, *device, [&] { expect_no_capture(*device); });
    if (is_packable(tensors[i]))
      numbers_for(*device, small).push_back(i);
    else
      tensors[i] = moved(tensors[i], *device, what, i);
  }
  for (const auto& [device, which] : small) {
    if (which.size() == 1) {
      tensors[which[0]] = moved(tensors[which[0]], device, what, which[0]);
      continue;
    }
    std::vector<at::Tensor> together;
    for (const auto i : which) together.push_back(tensors[i]);
    together = named(what, which[0], device, [&, to = device] { return copied_together(together, to); });
    for (std::size_t i = 0; i < which.size(); ++i) tensors[which[i]] = std::move(together[i]);
  }
}

}  // namespace

void move_to_devices(std::vector<at::Tensor>& tensors, const std::vector<c10::Device>& devices, const std::string& what,
                     const made_events& made) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!is_present(devices[i])) {
      throw error(errc::unsupported_tensor, what + "[" + std::to_string(i) + "]: it is for device " + devices[i].str() +
                                              " of this node, but this process has only " + names_of_present_devices() +
                                              "; send its cpu(), or give the sending node a device map to this node");
    }
  }
  const auto device_of = [&](std::size_t i) { return i < devices.size() ? std::optional(devices[i]) : std::nullopt; };
  move_all(tensors, device_of, what, made);
}

std::optional<c10::Device> device_behind(const torch::autograd::edge_list& edges, std::size_t index) {
  if (index >= edges.size() || !edges[index].is_valid()) return std::nullopt;
  return edges[index].function->input_metadata(edges[index].input_nr).device();
}

void move_to_devices(torch::autograd::variable_list& gradients, const torch::autograd::edge_list& edges,
                     const std::string& what, const made_events& made) {
  const auto device_of = [&](std::size_t i) {
    const auto device = device_behind(edges, i);
    return device && is_present(*device) ? device : std::nullopt;
  };
  move_all(gradients, device_of, what, made);
}

}  // namespace troupe::devices
