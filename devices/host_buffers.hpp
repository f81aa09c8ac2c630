// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>
#include <c10/core/Event.h>

namespace troupe::devices {

/// Page-locked host memory that transfers use again and again: locking pages is slow, and locked memory is scarce.
///   HB-1  what is locked, in use or idle, is never more than the budget. Idle buffers make room; what still does not fit gets
///         ordinary memory of its own. Nothing waits, nothing fails for want of budget.
///   HB-2  a buffer serves one tensor at a time, and again once the last reference to that tensor is gone, on whatever thread.
///   HB-3  a buffer has at most twice the bytes asked for, and at least one page.
///   HB-4  a buffer that a transfer still fills serves nothing else, even when its tensor is gone, and is not freed. Nobody waits
///         for it: another buffer serves, or ordinary memory where the budget allows no other. Where the pool ends first, that
///         memory is lost.
///   HB-5  tensors outlive the pool.
/// Any thread may use it.
class host_buffers {
 public:
  /// Budget in bytes. `type`: the accelerator whose transfers the memory is locked for.
  host_buffers(c10::DeviceType type, std::size_t budget);

  /// A tensor of the CPU with sizes, strides and dtype of `like`, which must be dense; its elements are not initialised.
  /// `filled` is recorded behind the transfer before the tensor is let go.
  at::Tensor take(const at::Tensor& like, std::shared_ptr<c10::Event> filled = nullptr);

  struct usage {
    std::size_t in_use = 0;   // bytes locked, in tensors
    std::size_t idle = 0;     // bytes locked, waiting for the next
    std::size_t refused = 0;  // tensors that got ordinary memory
  };
  usage used() const;

 private:
  struct shelf;
  std::shared_ptr<shelf> shelf_;
};

}  // namespace troupe::devices
