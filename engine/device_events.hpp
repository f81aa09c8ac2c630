// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/device_events_test.cpp
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

namespace troupe::engine {

/// True for a tensor of an accelerator. The accelerator may compute the elements after the call that returned the tensor.
bool is_of_accelerator(const at::Tensor& tensor);

/// Prevents that the memory of `tensor` is given to another tensor before the work that is queued on `stream` now has run.
void record_use(const at::Tensor& tensor, const c10::Stream& stream);

/// Returns an event that happens when all work that is queued on `stream` now has run.
std::shared_ptr<c10::Event> recorded(const c10::Stream& stream);

/// Lets streams, not threads, wait until accelerators have made tensors. Stores one event for each device. The event happens
/// when the device has made the recorded tensors.
///   DE-1  work that a thread queues on its current stream after wait(tensor) sees the elements of the tensor. The current
///         stream of the thread that called record(tensor) had made these elements, or had waited for them.
///   DE-2  the memory of a tensor that was passed to wait() is given to no other tensor before the work of DE-1 has run.
/// Threads may call wait() at the same time.
class device_events {
 public:
  /// Records an event on the current stream of the tensor's device, unless the device has an event already. One event serves
  /// all tensors of a device. So call clear() first if the stream has got more work since the last record().
  void record(const at::Tensor& tensor);
  void wait(const at::Tensor& tensor) const;

  void clear() noexcept { made_.clear(); }
  bool empty() const noexcept { return made_.empty(); }

 private:
  std::vector<std::pair<c10::Stream, std::shared_ptr<c10::Event>>> made_;  // one for each device
};

}  // namespace troupe::engine
