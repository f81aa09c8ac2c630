// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/landing.hpp>

#include <atomic>
#include <exception>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <troupe/devices/arrivals.hpp>
#include <troupe/devices/host_buffers.hpp>
#include <troupe/engine/device_events.hpp>
#include <troupe/messages/tensors_over_storages.hpp>

namespace troupe::devices {

namespace {

std::atomic<std::uint64_t> taken{0};  // bytes of the buffers of all landings

// Few sizes, because libtorch keeps freed page-locked memory of each size.
std::uint64_t size_of_buffer(std::uint64_t bytes) {
  constexpr std::uint64_t small = landing::most_bytes / 4;
  return bytes <= small ? small : landing::most_bytes;
}

// A tensor without elements, which says what to allocate.
at::Tensor shape_of_buffer(std::uint64_t bytes) {
  return at::empty({static_cast<std::int64_t>(size_of_buffer(bytes))}, at::device(at::kMeta).dtype(at::kByte));
}

}  // namespace

landing::~landing() { taken -= locked_.nbytes(); }

bool landing::may_land(c10::Device device, std::uint64_t bytes) {
  return bytes > part_bytes && bytes <= most_bytes && !device.is_cpu() && has_arrivals(device);
}

c10::Storage landing::make(c10::Device device, std::uint64_t bytes) noexcept {
  if (!may_land(device, bytes)) return {};
  const auto size = size_of_buffer(bytes);
  if (taken.fetch_add(size) + size <= most_together) {
    try {
      auto copied = std::make_shared<c10::Event>(device.type());
      auto locked = arrival_buffers(device.type()).allocate_idle(shape_of_buffer(bytes), copied);
      if (locked.defined()) {
        void* const elements = locked.mutable_data_ptr();
        auto* const owner = new landing(device, bytes, std::move(locked), std::move(copied));
        return c10::Storage(c10::Storage::use_byte_size_t(), static_cast<std::int64_t>(bytes),
                            c10::DataPtr(elements, owner, &release, c10::Device(c10::kCPU)), c10::GetCPUAllocator(),
                            /*resizable=*/true);
      }
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): ordinary memory will do
    }
  }
  taken -= size;
  return {};
}

void landing::prepare(c10::Device device, std::uint64_t bytes) {
  if (may_land(device, bytes)) arrival_buffers(device.type()).allocate(shape_of_buffer(bytes));
}

landing* landing::of(const c10::Storage& elements) noexcept {
  return elements ? elements.data_ptr().cast_context<landing>(&release) : nullptr;
}

void landing::copy_on(std::uint64_t there) {
  const checked_lock lock(mutex_);
  const auto end = there == bytes_ ? there : there / part_bytes * part_bytes;
  if (!is_over_ && end > queued_) copy(end);
}

at::Tensor landing::hand_over(const at::Tensor& host, c10::Device device) {
  const checked_lock lock(mutex_);
  if (is_over_ || device != device_ || host.nbytes() != bytes_) return {};
  copy(bytes_);
  if (std::exchange(is_over_, true)) return {};
  const auto current = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  copied_->block(current);
  engine::record_use(there_, current);
  auto result = tensor_over(std::exchange(there_, {}).storage(), host.scalar_type());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides());
  return result;
}

/// Queues the copy of the elements up to byte `end`. A failure of the device ends the landing.
void landing::copy(std::uint64_t end) {
  if (end == queued_) return;
  bool may_be_read = false;
  try {
    const c10::StreamGuard own(arrival_stream(device_));
    if (!there_.defined()) there_ = at::empty({static_cast<std::int64_t>(bytes_)}, at::device(device_).dtype(at::kByte));
    const auto first = static_cast<std::int64_t>(queued_);
    const auto last = static_cast<std::int64_t>(end);
    may_be_read = true;
    there_.slice(0, first, last).copy_(locked_.slice(0, first, last), true);
    copied_->record(own.current_stream());
    queued_ = end;
  } catch (const c10::Error&) {                // the copy of the whole tensor then fails, and tells
    if (may_be_read) new at::Tensor(locked_);  // leaks the buffer: no event says when the device has read it
    there_.reset();
    is_over_ = true;
  }
}

void leave_landing(at::Tensor& tensor) {
  if (tensor.defined() && tensor.layout() == at::kStrided && landing::of(tensor.storage()) != nullptr) tensor = tensor.clone();
}

}  // namespace troupe::devices
