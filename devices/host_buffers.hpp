// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/host_buffers_test.cpp
#pragma once

#include <cstddef>
#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>
#include <c10/core/Event.h>

namespace troupe::devices {

/// A pool of page-locked host memory for copies between host and device. The pool reuses its buffers, because locking pages is
/// slow and locked memory is scarce. While a copy still uses a buffer, the next tensor gets another buffer. It gets ordinary
/// memory if the budget allows no further buffer.
///   HB-1  the locked bytes, in use and idle, never exceed the budget. Idle buffers are freed for new ones. A tensor that still
///         does not fit gets ordinary memory, so allocate() neither waits nor fails.
///   HB-2  a buffer holds one tensor at a time. The buffer becomes idle when the last reference to its tensor is dropped, on
///         any thread.
///   HB-3  a buffer has at most twice the bytes asked for, and at least one page.
///   HB-4  while a copy uses a buffer, the buffer gets no other tensor and is not freed, even if its tensor is gone. No thread
///         waits for the copy. If the pool is destroyed before the copy has ended, the memory of the buffer leaks.
///   HB-5  tensors may outlive the pool.
/// Any thread may use the pool.
class host_buffers {
 public:
  static constexpr std::size_t default_budget = std::size_t{256} << 20;

  /// `type`: the type of the accelerators to or from which tensors are copied. `budget`: the largest number of locked bytes.
  host_buffers(c10::DeviceType type, std::size_t budget);

  /// Returns a CPU tensor with the sizes, strides and dtype of `like`, which must be dense. The elements are not initialised.
  /// The caller must record the event `filled` on the stream of the copy, after the copy and before dropping the tensor.
  /// Without `filled`, the buffer is idle as soon as the tensor is dropped.
  at::Tensor allocate(const at::Tensor& like, std::shared_ptr<c10::Event> filled = nullptr);
  /// As allocate(), but returns an undefined tensor if no buffer of the right size is idle. Neither locks nor frees memory,
  /// which would be slow, so network threads may call it.
  at::Tensor allocate_idle(const at::Tensor& like, std::shared_ptr<c10::Event> filled = nullptr);

  struct usage {
    std::size_t in_use = 0;   // locked bytes that tensors use
    std::size_t idle = 0;     // locked bytes that wait for the next tensor
    std::size_t refused = 0;  // tensors that got ordinary memory
  };
  usage used() const;

 private:
  struct shelf;
  struct buffer;

  at::Tensor lend(buffer&& given, std::size_t bytes, const at::Tensor& like, std::shared_ptr<c10::Event>&& filled);

  std::shared_ptr<shelf> shelf_;
};

}  // namespace troupe::devices
