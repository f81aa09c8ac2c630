// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/staging.hpp>

#include <algorithm>
#include <bit>
#include <deque>
#include <iterator>
#include <map>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <troupe/devices/present_devices.hpp>
#include <troupe/devices/present_sharing.hpp>
#include <troupe/engine/device_events.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe::devices {

namespace {

constexpr std::size_t page = 4096;

// Returns the tensor without gaps and overlaps in memory, and without lazy conjugation or negation. Copies only if needed.
at::Tensor dense(const at::Tensor& tensor) {
  at::Tensor plain = tensor.detach().resolve_conj().resolve_neg();
  return plain.is_non_overlapping_and_dense() ? plain : plain.contiguous();
}

at::Tensor empty_on(c10::Device device, const at::Tensor& like) {
  return at::empty_strided(like.sizes(), like.strides(), like.options().device(device));
}

// Returns the process's pool of page-locked buffers for tensors that arrive. The pool is never destroyed, because tensors may
// arrive until the process ends.
host_buffers& arrival_buffers(c10::DeviceType type) {
  static auto* const all = new host_buffers(type, staging::default_budget);
  return *all;
}

at::Tensor copied_to(const at::Tensor& tensor, c10::Device device) {
  const auto current_stream = [](c10::Device of) { return c10::impl::VirtualGuardImpl(of.type()).getStream(of); };
  if (!tensor.is_cpu()) engine::record_use(tensor, current_stream(tensor.device()));
  if (tensor.device() == device) return tensor;
  const c10::DeviceGuard guard(device);
  if (tensor.layout() != at::kStrided) return tensor.to(device);
  if (!tensor.is_cpu() || !tensor.is_non_overlapping_and_dense()) {
    at::Tensor there = empty_on(device, tensor);
    there.copy_(tensor);
    return there;
  }
  const c10::Stream current = current_stream(device);
  const c10::StreamGuard own(arrival_stream(device));
  const auto copied = std::make_shared<c10::Event>(device.type());
  const at::Tensor locked = arrival_buffers(device.type()).allocate(tensor, copied);
  locked.copy_(tensor);
  at::Tensor there = empty_on(device, tensor);
  there.copy_(locked, true);
  copied->record(own.current_stream());
  copied->block(current);
  engine::record_use(there, current);
  return there;
}

/// Returns the tensor, copied to the device. `what` and `index` name the tensor in error texts.
at::Tensor moved(const at::Tensor& tensor, c10::Device device, const std::string& what, std::size_t index) {
  try {
    return copied_to(tensor, device);
  } catch (const c10::Error& failed) {
    throw error(errc::function_failed, what + "[" + std::to_string(index) + "] could not be copied to " + device.str() + ": " +
                                         failed.what_without_backtrace());
  }
}

// Returns the event of the device in `events`. At the device's first tensor, adds an event to `events`.
std::shared_ptr<c10::Event>& event_for(c10::Device device, std::vector<std::shared_ptr<c10::Event>>& events) {
  const auto found = std::find_if(events.begin(), events.end(), [&](const auto& each) { return each->device() == device; });
  return found != events.end() ? *found : events.emplace_back(std::make_shared<c10::Event>(device.type()));
}

}  // namespace

struct host_buffers::shelf {
  struct buffer {
    buffer() = default;
    buffer(buffer&&) = default;
    buffer& operator=(buffer&&) = default;
    ~buffer() {
      if (memory && !is_over())
        memory.release_context();  // leaks the memory, because a late or failed device may still write to it
    }

    // True if no copy uses the buffer any more.
    bool is_over() const noexcept {
      try {
        return !filled || filled->query();
      } catch (...) {
        return false;  // the device has failed
      }
    }

    c10::DataPtr memory;
    std::shared_ptr<c10::Event> filled;
  };

  bool find_idle(std::size_t bytes, buffer& found) TROUPE_REQUIRES(mutex);
  std::vector<buffer> drop_idle(std::size_t bytes) TROUPE_REQUIRES(mutex);
  bool fits(std::size_t bytes) const TROUPE_REQUIRES(mutex) { return used.in_use + used.idle + bytes <= budget; }

  c10::Allocator* locked_memory = nullptr;
  std::size_t budget = 0;
  mutable checked_mutex mutex;
  // By size; the buffer that came back first is at the front.
  std::map<std::size_t, std::deque<buffer>> idle TROUPE_GUARDED_BY(mutex);
  usage used TROUPE_GUARDED_BY(mutex);
};

host_buffers::host_buffers(c10::DeviceType type, std::size_t budget) : shelf_(std::make_shared<shelf>()) {
  shelf_->locked_memory = at::globalContext().getPinnedMemoryAllocator(type);
  shelf_->budget = budget;
}

// Moves the first idle buffer of `bytes` bytes that no copy uses to `found`. Returns false if there is none.
bool host_buffers::shelf::find_idle(std::size_t bytes, buffer& found) {
  const auto some = idle.find(bytes);
  if (some == idle.end()) return false;
  auto& buffers = some->second;
  const auto first = std::find_if(buffers.begin(), buffers.end(), [](const buffer& each) { return each.is_over(); });
  if (first == buffers.end()) return false;
  found = std::move(*first);
  buffers.erase(first);
  used.idle -= bytes;
  if (buffers.empty()) idle.erase(some);
  return true;
}

// Removes idle buffers, the largest first, until `bytes` more bytes fit into the budget. Returns the removed buffers. The
// caller frees them without the lock, because freeing is slow.
std::vector<host_buffers::shelf::buffer> host_buffers::shelf::drop_idle(std::size_t bytes) {
  std::vector<buffer> gone;
  for (auto above = idle.end(); !fits(bytes) && above != idle.begin();) {
    buffer found;
    if (find_idle(std::prev(above)->first, found))
      gone.push_back(std::move(found));
    else
      --above;  // copies still use all buffers of that size
  }
  return gone;
}

at::Tensor host_buffers::allocate(const at::Tensor& like, std::shared_ptr<c10::Event> filled) {
  const auto options = like.options().device(at::kCPU);
  const std::size_t bytes = std::bit_ceil(std::max(like.nbytes(), page));
  auto own = std::make_shared<shelf::buffer>();
  std::vector<shelf::buffer> gone;
  {
    const checked_lock lock(shelf_->mutex);
    if (!shelf_->find_idle(bytes, *own)) {
      if (shelf_->used.in_use + bytes <= shelf_->budget) gone = shelf_->drop_idle(bytes);
      if (!shelf_->fits(bytes)) {
        ++shelf_->used.refused;
        return at::empty_strided(like.sizes(), like.strides(), options);
      }
    }
    shelf_->used.in_use += bytes;
  }
  try {
    gone.clear();
    if (!own->memory) own->memory = shelf_->locked_memory->allocate(bytes);
    own->filled = std::move(filled);
    const auto let_go = [shelf = shelf_, own, bytes](void*) {
      const checked_lock lock(shelf->mutex);
      shelf->used.in_use -= bytes;
      shelf->used.idle += bytes;
      shelf->idle[bytes].push_back(std::move(*own));
    };
    return at::from_blob(own->memory.get(), like.sizes(), like.strides(), let_go, options);
  } catch (...) {
    const checked_lock lock(shelf_->mutex);
    shelf_->used.in_use -= bytes;
    throw;
  }
}

host_buffers::usage host_buffers::used() const {
  const checked_lock lock(shelf_->mutex);
  return shelf_->used;
}

c10::Stream arrival_stream(c10::Device device) {
  static checked_mutex mutex;
  static auto* const all TROUPE_GUARDED_BY(mutex) = new std::map<c10::DeviceIndex, c10::Stream>;
  const checked_lock lock(mutex);
  const auto known = all->find(device.index());
  if (known != all->end()) return known->second;
  return all->emplace(device.index(), c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device)).first->second;
}

bool staged::offers(const at::Tensor& tensor) const { return !made.empty() && is_offerable(tensor); }

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

staged staging::to_host(std::vector<at::Tensor> tensors, bool offers) {
  staged result{std::move(tensors), {}, {}, {}, {}};
  if (offers) stay(result);
  const auto stays = [&](c10::Device device) {
    return std::any_of(result.made.begin(), result.made.end(), [&](const auto& each) { return each.first == device; });
  };
  for (std::size_t i = 0; i < result.tensors.size(); ++i) {
    at::Tensor& tensor = result.tensors[i];
    if (!tensor.defined() || tensor.is_cpu() || !is_stageable(tensor)) continue;
    const c10::Device device = tensor.device();
    result.devices.resize(result.tensors.size(), c10::Device(c10::kCPU));
    result.devices[i] = device;
    if (stays(device) && is_offerable(tensor)) continue;
    const c10::DeviceGuard guard(device);
    const at::Tensor source = dense(tensor);
    auto& filled = event_for(device, result.events);
    at::Tensor host = buffers(device.type()).allocate(source, filled);
    host.copy_(source, true);
    filled->record(c10::impl::VirtualGuardImpl(device.type())
                     .getStream(device));  // recorded again after each copy, so the event comes after the device's last copy
    tensor = std::move(host);
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

staged staging::after(shared_event& made, c10::Device device) {
  const c10::StreamGuard own(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device));
  made.block(own.current_stream());
  staged result;
  event_for(device, result.events)->record(own.current_stream());
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

void move_to_devices(std::vector<at::Tensor>& tensors, const std::vector<c10::Device>& devices, const std::string& what) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!is_present(devices[i])) {
      throw error(errc::unsupported_tensor, what + "[" + std::to_string(i) + "]: it is for device " + devices[i].str() +
                                              " of this node, but this process has only " + names_of_present_devices() +
                                              "; send its cpu(), or give the sending node a device map to this node");
    }
  }
  const c10::AutoGradMode no_grad(false);
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (tensors.at(i).defined() && !(devices[i].is_cpu() && tensors[i].is_cpu()))
      tensors[i] = moved(tensors[i], devices[i], what, i);
}

void move_to_devices(torch::autograd::variable_list& gradients, const torch::autograd::edge_list& edges,
                     const std::string& what) {
  const c10::AutoGradMode no_grad(false);
  for (std::size_t i = 0; i < std::min(gradients.size(), edges.size()); ++i) {
    if (!gradients[i].defined() || !edges[i].is_valid()) continue;
    const c10::Device device = edges[i].function->input_metadata(edges[i].input_nr).device();
    if ((!gradients[i].is_cpu() || !device.is_cpu()) && is_present(device)) gradients[i] = moved(gradients[i], device, what, i);
  }
}

}  // namespace troupe::devices
