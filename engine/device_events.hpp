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

/// True for a tensor whose elements an accelerator makes later than the call that returned the tensor.
bool is_of_accelerator(const at::Tensor& tensor);

/// Keeps the memory of `tensor` in use on `stream` until everything that is queued on `stream` now has run.
void record_use(const at::Tensor& tensor, const c10::Stream& stream);

/// An event after all that `stream` has been given.
std::shared_ptr<c10::Event> recorded(const c10::Stream& stream);

/// Events that happen when accelerators have made tensors, one for each device. Streams wait for them, threads do not.
///   DE-1  after record(tensor) and wait(tensor), work that the waiting thread queues on its current stream finds the elements
///         that the recording thread's current stream had made, or had waited for.
///   DE-2  the memory of a tensor that was waited for is given to no other tensor before the work of DE-1 has run.
/// Threads may call wait() at the same time.
class device_events {
 public:
  /// Notes what the current stream of the tensor's device has been given. One event serves all tensors of a device. So clear()
  /// has to be called first if the stream has got more work since the last record().
  void record(const at::Tensor& tensor);
  void wait(const at::Tensor& tensor) const;

  void clear() noexcept { made_.clear(); }
  bool empty() const noexcept { return made_.empty(); }

 private:
  std::vector<std::pair<c10::Stream, std::shared_ptr<c10::Event>>> made_;  // one for each device
};

}  // namespace troupe::engine
