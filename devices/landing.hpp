// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/landing_test.cpp
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Storage.h>

#include <troupe/messages/mutex.hpp>

namespace troupe::devices {

/// Page-locked memory in which the elements of a large tensor come from another node for a device, and their copy on the
/// device. The device copies the first elements while others still come.
///   AL-1  make() takes a buffer of the process's pool (arrival_buffers) that is idle, or nothing. So it locks no memory, and
///         the thread of a network may call it. prepare() makes such a buffer for the next tensor.
///   AL-2  no element is copied before it is there. Each element is copied once, on the arrival stream of the device.
///   AL-3  hand_over() gives the copy to one tensor. The current stream of the device waits for the copy.
///   AL-4  if the device fails or has no memory left, nothing is handed over. The page-locked memory still has all elements.
///   AL-5  the buffer is not used again before the device has copied its elements (HB-4).
///   AL-6  landings take at most `most_together` bytes of the pool, and of the memory of all devices together. Only tensors for
///         devices land to which arriving tensors were copied before.
///   AL-7  a tensor that stays on the host leaves its landing (leave_landing()) before a program can change the tensor.
/// Any thread may use the object. No function waits for a device.
class landing {
 public:
  static constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t most_together = 2 * most_bytes;

  ~landing();
  landing(const landing&) = delete;
  landing& operator=(const landing&) = delete;

  /// Whether such a tensor for this device lands, if there is a buffer: it has more than part_bytes and at most `most_bytes`.
  static bool may_land(c10::Device device, std::uint64_t bytes);
  /// Returns memory for the elements of a tensor for this device. Empty if the tensor may not land, or no buffer is idle. The
  /// storage owns the landing.
  static c10::Storage make(c10::Device device, std::uint64_t bytes) noexcept;
  /// Makes a buffer for tensors of this size, unless one is idle. May be slow. Throws c10::Error.
  static void prepare(c10::Device device, std::uint64_t bytes);
  /// The landing of this storage; null if it has none.
  static landing* of(const c10::Storage& elements) noexcept;

  c10::Device device() const noexcept { return device_; }
  /// Queues the copy of the elements that came since the last call, up to the last whole part of part_bytes. `there`: how many
  /// bytes have come, from the first one on.
  void copy_on(std::uint64_t there);
  /// Queues the rest of the copy. Returns it as a tensor with the sizes, strides and dtype of `host`, which is dense and has
  /// the elements. Undefined if the tensor is for another device, or AL-3 or AL-4 says so.
  at::Tensor hand_over(const at::Tensor& host, c10::Device device);

 private:
  landing(c10::Device device, std::uint64_t bytes, at::Tensor locked, std::shared_ptr<c10::Event> copied)
      : device_(device), bytes_(bytes), locked_(std::move(locked)), copied_(std::move(copied)) {}
  static void release(void* self) noexcept { delete static_cast<landing*>(self); }
  void copy(std::uint64_t end) TROUPE_REQUIRES(mutex_);

  const c10::Device device_;
  const std::uint64_t bytes_;
  const at::Tensor locked_;  // the buffer, which may have more bytes
  const std::shared_ptr<c10::Event> copied_;
  checked_mutex mutex_;
  at::Tensor there_ TROUPE_GUARDED_BY(mutex_);  // on the device; undefined before the first part is copied
  std::uint64_t queued_ TROUPE_GUARDED_BY(mutex_) = 0;
  bool is_over_ TROUPE_GUARDED_BY(mutex_) = false;  // it was handed over, or the device has failed
};

/// Copies the elements of a tensor that stays on the host from its landing to ordinary memory. No effect on other tensors.
void leave_landing(at::Tensor& tensor);

}  // namespace troupe::devices
