// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/staging_test.cpp, tests/devices/host_buffers_test.cpp
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/DeviceType.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <torch/csrc/autograd/function.h>

namespace troupe::devices {

/// Page-locked host memory that transfers use again and again, because locking pages is slow and locked memory is scarce.
/// While a transfer fills a buffer, the next tensor gets another buffer, or ordinary memory if the budget allows no other
/// buffer.
///   HB-1  the locked bytes, in use and idle, never exceed the budget. Idle buffers are freed to make room. A tensor that
///         still does not fit gets ordinary memory, so nothing waits and nothing fails.
///   HB-2  a buffer serves one tensor at a time. The buffer may serve the next tensor when the last reference to the earlier
///         tensor is gone, whichever thread dropped the reference.
///   HB-3  a buffer has at most twice the bytes asked for, and at least one page.
///   HB-4  a buffer that a transfer still fills serves no other tensor and is not freed, even if its own tensor is gone. No
///         thread waits for that transfer. If the pool ends before the transfer, the memory of the buffer is lost.
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

/// Tensors on their way to the host.
struct staged {
  std::vector<at::Tensor> tensors;   // on the CPU; all elements have arrived when all `events` have happened
  std::vector<c10::Device> devices;  // device of each tensor before the copy; empty if all were on the CPU
  std::vector<std::shared_ptr<c10::Event>> events;

  /// True if all elements have arrived.
  bool ready() const;
  /// Waits until all elements have arrived. Throws the c10::Error of the device if the device failed.
  void wait() const;
};

/// Copies tensors of an accelerator to host memory, from which they can be sent.
///   ST-1  the copy is queued on the current stream of the tensor's device: after the work that made the tensor, before work
///         that overwrites it. The calling thread does not wait, unless the budget of the host buffers is spent.
///   ST-2  elements arrive bit for bit, with the strides of a dense tensor. A tensor with gaps arrives without gaps.
///   ST-3  CPU tensors pass unchanged and cost nothing.
///   ST-4  a device tensor that cannot be copied (sparse, nested, quantised, meta) stays on its device. The sender then refuses
///         the tensor with a reason.
/// Any thread may use the object.
class staging {
 public:
  static constexpr std::size_t default_budget = std::size_t{256} << 20;

  explicit staging(std::size_t budget = default_budget) : budget_(budget) {}

  staged to_host(std::vector<at::Tensor> tensors);

  host_buffers::usage used() const;

 private:
  host_buffers& buffers(c10::DeviceType type);

  const std::size_t budget_;
  mutable std::mutex mutex_;
  std::optional<host_buffers> buffers_;  // made for the first tensor of an accelerator
};

/// True for a tensor that staging copies to the host.
bool is_stageable(const at::Tensor& tensor);

/// The stream on which tensors that arrive are copied to a device, the same for all threads.
c10::Stream arrival_stream(c10::Device device);

/// Moves tensors that arrived in a message to `devices`, which has one device for each tensor.
///   AV-1  the copies are queued on the arrival streams of the devices, from page-locked memory. So the copies do not wait for
///         work that other streams have got before. The current streams of the devices wait for the copies.
///   AV-2  the calling thread does not wait for a device, unless the budget of page-locked memory (staging::default_budget for
///         the process) is spent. When the function returns, the memory of the tensors that arrived may change.
/// Throws troupe::error(unsupported_tensor) if this process lacks one of the devices, before anything is copied, and
/// troupe::error(function_failed) if a device fails or has no memory left. The text begins with `what`.
void move_to_devices(std::vector<at::Tensor>& tensors, const std::vector<c10::Device>& devices, const std::string& what);

/// Moves each gradient to the device of the input that its edge leads to. Throws as the other move_to_devices() if a device
/// fails.
void move_to_devices(torch::autograd::variable_list& gradients, const torch::autograd::edge_list& edges,
                     const std::string& what);

}  // namespace troupe::devices
