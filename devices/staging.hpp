// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/devices/host_buffers.hpp>

namespace troupe::devices {

/// Tensors on their way to the host.
struct staged {
  std::vector<at::Tensor> tensors;   // on the CPU; all elements have arrived when all `events` have happened
  std::vector<c10::Device> devices;  // device of each tensor before; empty if all were on the CPU
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

  /// How much of the host buffers is used.
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

/// Moves tensors that arrived to these devices, one for each tensor.
///   AV-1  the copies are queued on the arrival streams of the devices, from page-locked memory: they do not wait for work that other
///         streams have got before. The current streams of the devices wait for the copies.
///   AV-2  the calling thread does not wait for a device, unless the budget of page-locked memory (staging::default_budget for the process)
///         is spent. The tensors that arrived may change at once.
/// Throws troupe::error(unsupported_tensor) if this process lacks one of the devices, before anything is copied, and
/// troupe::error(function_failed) if a device fails or has no memory left. The text begins with `what`.
void move_to_devices(std::vector<at::Tensor>& tensors, const std::vector<c10::Device>& devices, const std::string& what);

/// Moves each gradient to the device of the input that its edge leads to. Throws as the function above if a device fails.
void move_to_devices(torch::autograd::variable_list& gradients, const torch::autograd::edge_list& edges,
                     const std::string& what);

}  // namespace troupe::devices
