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
#include <torch/csrc/autograd/edge.h>

#include <troupe/devices/host_buffers.hpp>

namespace troupe::devices {

/// Tensors on their way to the host.
struct staged {
  std::vector<at::Tensor> tensors;   // on the CPU; elements that are to come are there when all of `events` have happened
  std::vector<c10::Device> devices;  // where each was; empty if all were on the CPU
  std::vector<std::shared_ptr<c10::Event>> events;

  /// True once all elements are there.
  bool ready() const;
  /// Returns then. What went wrong on the device comes out as its c10::Error.
  void wait() const;
};

/// Copies tensors of an accelerator to host memory from which they can be sent.
///   ST-1  the copy is queued on the current stream of the tensor's device: after what made it there, before what overwrites
///         it. The calling thread does not wait, unless the host buffers' budget is spent.
///   ST-2  elements arrive bit for bit, with the strides of a dense tensor; one with gaps comes without them.
///   ST-3  tensors of the CPU pass as they are and cost nothing.
///   ST-4  a device tensor that can't be copied so (sparse, nested, quantised, meta) stays as it is, for the sender to refuse
///         by name.
/// Any thread may use it.
class staging {
 public:
  static constexpr std::size_t default_budget = std::size_t{256} << 20;

  explicit staging(std::size_t budget = default_budget) : budget_(budget) {}

  staged to_host(std::vector<at::Tensor> tensors);

  /// Of the host buffers.
  host_buffers::usage used() const;

 private:
  host_buffers& buffers(c10::DeviceType type);

  const std::size_t budget_;
  mutable std::mutex mutex_;
  std::optional<host_buffers> buffers_;  // from the first tensor of an accelerator on
};

/// True for a tensor that staging takes to the host.
bool is_stageable(const at::Tensor& tensor);

/// Puts what arrived where it was when it was sent: queued on the device's current stream. Throws
/// troupe::error(unsupported_tensor), the text beginning with `what`, for a device that this process lacks, before anything is
/// copied.
void place(std::vector<at::Tensor>& tensors, const std::vector<c10::Device>& devices, const std::string& what);

/// Puts gradients where the inputs are that the edges lead to.
void place(torch::autograd::variable_list& gradients, const torch::autograd::edge_list& edges);

}  // namespace troupe::devices
