// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>
#include <c10/core/Event.h>

namespace troupe::devices {

/// Page-locked host memory that transfers use again and again, because locking pages is slow and locked memory is scarce.
///   HB-1  the locked bytes, in use and idle, never exceed the budget. Idle buffers are freed to make room. A tensor that
///         still does not fit gets ordinary memory. So a budget that is used up makes nothing wait and nothing fail.
///   HB-2  a buffer serves one tensor at a time. The buffer may serve the next tensor when the last reference to that tensor is
///         gone, whichever thread dropped the reference.
///   HB-3  a buffer has at most twice the bytes asked for, and at least one page.
///   HB-4  a buffer that a transfer still fills serves no other tensor and is not freed, even if its own tensor is gone.
///         No thread waits for that transfer: the next tensor gets another buffer, or ordinary memory if the budget allows no
///         other buffer. If the pool ends before the transfer, the memory of the buffer is lost.
///   HB-5  tensors may outlive the pool.
/// Any thread may use the pool.
class host_buffers {
 public:
  /// `budget` in bytes. `type`: the accelerator for whose transfers the memory is locked.
  host_buffers(c10::DeviceType type, std::size_t budget);

  /// A CPU tensor with sizes, strides and dtype of `like`, which must be dense. The elements are not initialised. The caller
  /// must record `filled` after the transfer, on the same stream, before dropping the tensor.
  at::Tensor allocate(const at::Tensor& like, std::shared_ptr<c10::Event> filled = nullptr);

  struct usage {
    std::size_t in_use = 0;   // locked bytes that tensors use
    std::size_t idle = 0;     // locked bytes that wait for the next tensor
    std::size_t refused = 0;  // tensors that got ordinary memory
  };
  usage used() const;

 private:
  struct shelf;
  std::shared_ptr<shelf> shelf_;
};

}  // namespace troupe::devices
