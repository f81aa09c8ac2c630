// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/staging_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/DeviceType.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/devices/device_codec.hpp>
#include <troupe/devices/host_buffers.hpp>
#include <troupe/devices/memory_sharing.hpp>
#include <troupe/messages/mutex.hpp>
#include <troupe/messages/packed_tensors.hpp>

namespace troupe::devices {

/// For each device: the event that happens when the elements of its tensors are made.
using made_events = std::vector<std::pair<c10::Device, std::shared_ptr<shared_event>>>;

/// A copy of a large tensor to the host. It is in parts, so that the first bytes can leave before the last ones have come.
struct copy_in_parts {
  at::Tensor host;
  struct part {
    std::uint64_t end;  // in bytes: all before are there when the event has happened
    std::shared_ptr<c10::Event> copied;
  };
  std::vector<part> parts;
};

/// What devices still make of the tensors of a message that is on its way.
struct unfinished {
  std::vector<copy_in_parts> coming;
  std::vector<coded_tensor> coded;  // `bytes` and `largest` are on the host when `staged::events` have happened
};

/// Tensors whose copies to the host may still be running.
struct staged {
  std::vector<at::Tensor>
    tensors;  // on the CPU, but for those that stay on their devices; all elements have arrived when all `events`
              // have happened, but for
              // `rest->coming`
  std::vector<c10::Device> devices;  // device of each tensor before the copy; empty if all were on the CPU
  std::vector<std::shared_ptr<c10::Event>> events;
  std::shared_ptr<unfinished> rest;  // null: nothing
  made_events made;                  // of the devices on which tensors stay
  bool for_itself = false;           // whether all tensors stay, because the message does not leave this node
  std::string not_offered;           // why tensors that were to be offered are not; empty if there are none

  /// Whether the tensor stays on its device.
  bool offers(const at::Tensor& tensor) const;
  /// True if all elements have arrived.
  bool ready() const;
  /// Waits until all elements have arrived. Throws the c10::Error of the device if the device failed.
  void wait() const;
};

/// Copies tensors of an accelerator to host memory, from which they can be sent.
///   ST-1  the copy is queued on the current stream of the tensor's device. So it comes after the work that made the tensor,
///         and before later work that overwrites the tensor (not so if the tensor is offered: ST-5). The calling thread does
///         not wait for the copy, unless the budget of the host buffers is spent.
///   ST-2  the copy has the bits of the tensor. A dense tensor keeps its strides. A tensor with gaps in memory is copied
///         without gaps.
///   ST-3  a CPU tensor is returned unchanged, without a copy.
///   ST-4  a device tensor that cannot be copied (sparse, nested, quantised, meta) stays on its device. The sender then refuses
///         the tensor with a reason.
///   ST-5  a tensor that is offered stays on its device too, without gaps in memory. The receiver copies it after the work that
///         made it. Nothing protects it from later work that overwrites it: the receiver may read what that work wrote. If
///         the accelerator makes no event for other processes, no tensor is offered.
///   ST-6  tensors of fewer than `least_offered` bytes are packed on their device, and leave the device in one copy.
///   ST-7  with `in_parts`, a tensor of more than `part_bytes` is copied in parts. So its first bytes can leave early.
///   ST-8  in a graph capture nothing is queued: a c10::Error says so.
/// Any thread may use the object.
class staging {
 public:
  explicit staging(std::size_t budget = host_buffers::default_budget) : budget_(budget) {}

  /// `offers`: whether the tensors that is_offerable() allows are offered. `in_parts`: whether the caller sends large tensors
  /// as their parts come.
  staged to_host(std::vector<at::Tensor> tensors, bool offers = false, bool in_parts = false);
  /// As to_host(), for a message in this format. What a device can compress, it compresses; the host gets the bytes. If
  /// residuals are used, all copies are queued on one stream for each device, and the current streams wait for them.
  staged to_host_coded(std::vector<at::Tensor> tensors, wire_format format, const residual_line& residuals);
  /// For a message of a node to itself: tensors stay on their devices, without gaps in memory.
  static staged for_itself(std::vector<at::Tensor> tensors);
  /// Nothing is copied. The event happens after `made`, and a stream of the device that no other work waits for waits for it.
  static staged after(shared_event& made, c10::Device device);
  /// Copies a tensor after `made`, on a stream that no other work waits for.
  staged to_host_after(const at::Tensor& tensor, shared_event& made);

  host_buffers::usage used() const;

 private:
  static void stay(staged& all);
  void copy(staged& all, c10::Device from, const std::vector<std::size_t>& which, bool in_parts);
  copy_in_parts begin_copy(const at::Tensor& source);
  host_buffers& buffers(c10::DeviceType type);
  staged coded(std::vector<at::Tensor> tensors, wire_format format, const residual_line& residuals);
  c10::Stream coding_stream(c10::Device device);

  const std::size_t budget_;
  mutable checked_mutex mutex_;
  std::optional<host_buffers> buffers_ TROUPE_GUARDED_BY(mutex_);  // made for the first tensor of an accelerator
  std::map<c10::DeviceIndex, c10::Stream> coding_streams_ TROUPE_GUARDED_BY(mutex_);
};

/// True for a tensor that staging::to_host() copies to the host.
bool is_stageable(const at::Tensor& tensor);

/// Tensors of a device with fewer bytes are not offered: the host is the shorter way for them.
inline constexpr std::size_t least_offered = std::size_t{64} << 10;
/// True for a tensor of a device whose elements other processes of the machine can read. A tensor of bool can't be offered,
/// because nobody would look whether its bytes are 0 or 1.
bool is_offerable(const at::Tensor& tensor);

/// Moves tensors that arrived in a message to `devices`, which has one device for each tensor. First the current stream of each
/// device in `made` waits for the event.
///   AV-1  the copies are queued on the arrival streams of the devices, so they do not wait for earlier work on other streams.
///         They read page-locked memory. The current stream of each device waits for its copies.
///   AV-2  the calling thread does not wait for a device, unless the budget of page-locked memory is spent
///         (host_buffers::default_budget for the process). When the function returns, the memory of the tensors that arrived
///         may be overwritten, but for that of a landing.
///   AV-3  a tensor that is on its device already is not copied. Its memory is not used again before work ends that is on the
///         current stream. A tensor that goes from its device to the CPU makes the thread wait.
///   AV-4  several tensors of fewer than `least_offered` bytes go to a device in one copy. The current stream unpacks them.
/// Throws troupe::error(unsupported_tensor), before anything is copied, if this process lacks one of the devices. Throws
/// troupe::error(function_failed) if a device fails or has no memory left. The error text begins with `what`.
void move_to_devices(std::vector<at::Tensor>& tensors, const std::vector<c10::Device>& devices, const std::string& what,
                     const made_events& made = {});

/// The device of the input to which this edge of a function leads; nothing if the function has no such edge.
std::optional<c10::Device> device_behind(const torch::autograd::edge_list& edges, std::size_t index);

/// Moves each gradient to the device of the input to which its edge leads, if this process has the device. Throws
/// troupe::error(function_failed) if a device fails or has no memory left.
void move_to_devices(torch::autograd::variable_list& gradients, const torch::autograd::edge_list& edges,
                     const std::string& what, const made_events& made = {});

}  // namespace troupe::devices
