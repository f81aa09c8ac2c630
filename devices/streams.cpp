// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/streams.hpp>

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <troupe/devices/present_devices.hpp>
#include <troupe/engine/device_events.hpp>
#include <troupe/engine/input_buffer.hpp>
#include <troupe/engine/torch_version.hpp>

namespace troupe::devices {

using engine::plan;
using engine::record_use;
using engine::recorded;

namespace {

// Gives the warning of SO-8, once, if `leaf` is an AccumulateGrad and the setting is on. libtorch's engine gives the same
// warning and uses the same setting.
void warn_of_other_stream(const torch::autograd::Node& leaf) {
  if (!at::globalContext().warnOnAccumulateGradStreamMismatch()) return;
  if (dynamic_cast<const torch::autograd::AccumulateGrad*>(&leaf) == nullptr) return;
  TORCH_WARN_ONCE(
    "a gradient is accumulated on another stream than the one on which it was made, so one stream waits for the other. A "
    "leaf's gradient is "
    "accumulated on the stream that was current when the leaf was first used in a graph that still lives: let go of earlier "
    "graphs (a kept "
    "loss holds its graph), or use the leaf on one stream alone. If the two streams are wanted, turn this warning off by "
    "at::globalContext().setWarnOnAccumulateGradStreamMismatch(false), in Python by "
    "torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False).");
}

bool contains(const std::vector<c10::Stream>& all, const c10::Stream& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

#if TROUPE_TORCH_HAS_CAPTURE_CHECKS
bool is_captured(const c10::Stream& stream) { return stream.is_capturing(); }
bool moves_stale_streams() { return at::globalContext().overrideStaleCaptureStream(); }
#else
bool is_captured(const c10::Stream&) { return false; }
bool moves_stale_streams() { return false; }
#endif

constexpr auto what_to_do =
  ". Run the forward pass on the captured stream, let go of earlier graphs before the capture (a kept loss holds its graph), "
  "or call at::globalContext().setOverrideStaleCaptureStream(true), in Python "
  "torch.autograd.graph.set_override_stale_capture_stream(True)";

}  // namespace

streams::streams(const plan& graph, c10::DeviceType type) : accelerator_(type), arrivals_(graph.slot_count) {
  std::optional<c10::Stream> one;
  for (const plan::vertex& each : graph.vertices) {
    if (const auto stream = each.function->stream()) {
      several_ = several_ || (one && *one != *stream);
      one = stream;
    }
  }
}

void streams::begin() {
  callers_.clear();
  used_by_leaves_.clear();
  for (c10::DeviceIndex index = 0; index < accelerator_.deviceCount(); ++index)
    callers_.push_back(accelerator_.getStream({accelerator_.type(), index}));
}

void streams::end() {
  leave();
  made_.clear();
  for (const c10::Stream& stream : std::exchange(used_, {})) {
    const c10::Stream& callers = callers_.at(static_cast<std::size_t>(stream.device_index()));
    if (callers == stream) continue;
    if (is_captured(stream) == is_captured(callers))
      record_event(stream)->block(callers);
    else
      TORCH_CHECK(moves_stale_streams() || !contains(used_by_leaves_, stream), "troupe: a leaf is on ", stream,
                  ", and the caller of the pass on ", callers, ", but only one of them is in a graph capture", what_to_do);
  }
  made_.clear();
}

std::optional<c10::Stream> streams::stream_of(const plan::vertex& function) const {
  if (function.slot_count > 0 && arrivals_[function.first_slot].moved_to) return arrivals_[function.first_slot].moved_to;
  return function.function->stream();
}

void streams::enter_stream(const plan::vertex& function) {
  const auto stream = stream_of(function);
  if (!stream) return;
  if (!contains(used_, *stream)) used_.push_back(*stream);
  if (function.edge_count == 0 && !contains(used_by_leaves_, *stream)) used_by_leaves_.push_back(*stream);
  entered_.emplace(*stream);
}

// Returns the stream on which `consumer` uses a gradient that was made on `making`. `use` is that stream outside of a capture.
c10::Stream streams::in_capture(const plan::vertex& consumer, const c10::Stream& making, const c10::Stream& use) {
  if (making == use || !is_captured(making) || is_captured(use)) return use;
  if (moves_stale_streams()) return arrivals_[consumer.first_slot].moved_to.emplace(making);
  TORCH_CHECK(use.id() != 0, "troupe: function '", consumer.function->name(),
              "' is on the default stream, and its gradient on ", making,
              ", whose graph capture cannot wait for the default stream", what_to_do);
  return use;
}

void streams::enter(const plan::vertex& function) {
  made_.clear();
  enter_stream(function);
  for (std::uint32_t slot = function.first_slot; slot < function.first_slot + function.slot_count; ++slot)
    await(arrivals_[slot]);
}

void streams::leave() noexcept { entered_.reset(); }

streams::events streams::run_elsewhere(const plan::vertex& function, const std::vector<at::Tensor>& outputs,
                                       const std::function<void()>& work) const {
  std::optional<c10::StreamGuard> on;
  if (const auto stream = stream_of(function)) on.emplace(*stream);
  work();
  events made;
  if (!several_) return made;
  for (const at::Tensor& each : outputs) {
    if (!each.defined() || each.device().type() != accelerator_.type()) continue;
    const c10::Stream stream = accelerator_.getStream(each.device());
    if (std::none_of(made.begin(), made.end(), [&](const auto& known) { return known.first == stream; }))
      made.emplace_back(stream, recorded(stream));
  }
  return made;
}

void streams::enter_after(const plan::vertex& function, events made) {
  enter_stream(function);
  made_ = std::move(made);
}

// Returns the stream on which the function uses its tensors on `device`; empty if `device` is not an accelerator.
std::optional<c10::Stream> streams::in_effect(const plan::vertex& function, c10::Device device) const {
  if (device.type() != accelerator_.type()) return std::nullopt;
  const auto own = stream_of(function);
  return own && own->device() == device ? own : callers_.at(static_cast<std::size_t>(device.index()));
}

// Returns an event that is recorded on `stream` after all work that the entered function has queued. All outputs of the
// function on this stream share one event.
streams::event streams::record_event(const c10::Stream& stream) {
  const auto known = std::find_if(made_.begin(), made_.end(), [&](const auto& each) { return each.first == stream; });
  if (known != made_.end()) return known->second;
  return made_.emplace_back(stream, recorded(stream)).second;
}

void streams::await(arrival& input) {
  if (input.made) {
    input.made->block(*input.used_on);
    input.made.reset();
  }
}

bool streams::may_be_read_elsewhere(const at::Tensor& value) const {
  return several_ &&
         (!torch::autograd::impl::is_tensor_stealable(value) || !value.has_storage() || value.storage().use_count() > 1);
}

void streams::add(const plan::vertex& consumer, std::uint32_t slot, at::Tensor& buffer, at::Tensor&& value) {
  if (!value.defined()) return;
  auto use = in_effect(consumer, value.device());
  if (!use) return engine::accumulate(buffer, std::move(value));
  const c10::Stream making = accelerator_.getStream(value.device());
  use = in_capture(consumer, making, *use);
  if (making != *use) {
    if (entered_) warn_of_other_stream(*consumer.function);
    record_use(value, *use);
  }
  arrival& input = arrivals_[slot];
  if (!buffer.defined()) {
    input.shared = may_be_read_elsewhere(value);
    if (making != *use) {
      input.made = record_event(making);
      input.used_on = use;
    }
    return engine::accumulate(buffer, std::move(value));
  }
  await(input);
  if (making != *use) record_event(making)->block(*use);
  const c10::StreamGuard there(*use);
  const at::Tensor held =
    input.shared ? buffer : at::Tensor();  // a second reference, so that accumulate() does not add in place
  input.shared = false;
  engine::accumulate(buffer, std::move(value));
}

void streams::add(const plan::vertex& consumer, std::uint32_t slot, at::Tensor& value, const std::function<void()>& sum) {
  auto use = value.defined() ? in_effect(consumer, value.device()) : std::nullopt;
  if (!use) return sum();
  const c10::Stream making = accelerator_.getStream(value.device());
  use = in_capture(consumer, making, *use);
  if (may_be_read_elsewhere(value)) {
    value = value.clone();
    made_.clear();  // the next events must be recorded after this copy
  }
  await(arrivals_[slot]);
  if (making != *use) {
    if (entered_) warn_of_other_stream(*consumer.function);
    record_use(value, *use);
    record_event(making)->block(*use);
  }
  const c10::StreamGuard there(*use);
  sum();
}

bool streams::is_on_this_stream(const plan::vertex& consumer, std::uint32_t slot, const at::Tensor& buffer) const {
  const auto use = in_effect(consumer, buffer.device());
  return !use || (!arrivals_[slot].made && !arrivals_[slot].shared && *use == accelerator_.getStream(buffer.device()));
}

void streams::give_to_caller(const at::Tensor& result) {
  if (result.defined() && result.device().type() == accelerator_.type()) {
    const c10::Stream& callers = callers_.at(static_cast<std::size_t>(result.device().index()));
    if (callers != accelerator_.getStream(result.device())) record_use(result, callers);
  }
}

namespace {

std::unique_ptr<engine::stream_order> make_order(const plan& graph) {
  const auto any = [&] {
    return std::any_of(graph.vertices.begin(), graph.vertices.end(),
                       [](const plan::vertex& each) { return each.function->device().type() != at::kCPU; });
  };
  constexpr std::size_t few = 16;  // for so few functions, any() is faster than accelerator_type()
  if (graph.vertices.size() <= few && !any()) return nullptr;
  const auto type = accelerator_type();
  return type && any() ? std::make_unique<streams>(graph, *type) : nullptr;
}

const bool is_registered = [] {
  engine::register_accelerators({make_order, accelerator_type});
  return true;
}();

}  // namespace

}  // namespace troupe::devices

// The linker looks for this symbol in each program that links troupe::streams (devices/CMakeLists.txt). So the program contains
// this file, which registers accelerators with the engine.
extern "C" bool troupe_knows_accelerators() { return troupe::devices::is_registered; }
