// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/outbox.hpp>

#include <algorithm>
#include <functional>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <troupe/devices/compressed_tensors.hpp>
#include <troupe/devices/present_devices.hpp>
#include <troupe/devices/present_sharing.hpp>
#include <troupe/messages/expect.hpp>
#include <troupe/messages/packed_tensors.hpp>
#include <troupe/messages/tensor_codec.hpp>

namespace troupe::services {

outbox::packed outbox::pack(context_id context, std::vector<at::Tensor> tensors, const std::string& what, node_id to,
                            wire_format format, bool by_gateway) {
  packed result;
  auto& payload = result.payload;
  TROUPE_EXPECT(departures_);
  payload.context = context;
  payload.message = {clock_.next_number(), self_.id()};
  if (to != self_.id()) check_count_travels(tensors, what);
  warn_of_profiler(to);
  devices::staged staged;
  try {
    staged = by_gateway ? stage(tensors, to, format) : departures_->stage.to_host(tensors);
  } catch (const c10::Error& failed) {
    throw error(errc::function_failed,
                what + ": its tensors could not be copied to the host: " + failed.what_without_backtrace());
  }
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].defined())
      check_can_travel(staged.tensors[i], "tensor " + std::to_string(i) + " of " + what, staged.offers(staged.tensors[i]));
  if (context && c10::GradMode::is_enabled()) result.send = engine::attach_send(payload.message, tensors);
  payload.detached = !context && c10::GradMode::is_enabled() && std::any_of(tensors.begin(), tensors.end(), [](const auto& x) {
    return x.defined() && x.requires_grad();
  });
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (result.send) payload.requires_grad.push_back(tensors[i].defined() && tensors[i].requires_grad());
  payload.tensors = travelling_forms(staged.tensors);
  payload.format = format;
  payload.devices = staged.devices;
  payload.ahead.made = staged.made;
  payload.ahead.unfinished = staged.rest;
  if (staged.events.empty()) compress(payload.tensors, payload.packings, payload.ahead, to, format);
  result.arriving = std::move(staged);
  return result;
}

devices::staged outbox::stage(std::vector<at::Tensor> tensors, node_id to, wire_format format, std::uint64_t call_key) {
  TROUPE_EXPECT(departures_);
  if (to == self_.id()) return devices::staging::for_itself(std::move(tensors));
  const auto used = format_for(to, format);
  if (used != wire_format::exact) return departures_->stage.to_host_coded(std::move(tensors), used, line_to(to, call_key));
  const bool offers = std::any_of(tensors.begin(), tensors.end(), devices::is_offerable) && may_offer(to);
  auto result = departures_->stage.to_host(std::move(tensors), offers, true);
  if (!result.not_offered.empty()) go_over_the_host(to, result.not_offered);
  return result;
}

/// Whether large tensors of devices are offered to the node. Says in the log why a node of this machine gets no offers.
bool outbox::may_offer(node_id to) const {
  if (directory_.traffic.is_over_the_host(to)) return false;
  const auto there = directory_.devices(to);
  if (std::all_of(there.begin(), there.end(), [](const auto& each) { return each.is_cpu(); })) return false;
  const auto why = why_not_offered(to);
  if (why && !why->empty()) go_over_the_host(to, *why);
  return !why;
}

/// Nothing if the node may get offers. Empty if the node is on another machine, as far as its address says.
std::optional<std::string> outbox::why_not_offered(node_id to) const {
  const auto host = directory_.host(to);
  const bool is_far = !is_loopback(host);
  if (is_far && host != self_.as_member().host) return "";
  if (is_far) return "it does not listen on loopback";
  if (!options_.direct_memory) return "direct memory is turned off here";
  const auto type = devices::accelerator_type();
  if (!type || devices::sharing_of(*type) == nullptr)
    return "this process can't share memory of its devices; for CUDA it needs libtroupe_cuda.so of its own build";
  return std::nullopt;
}

void outbox::go_over_the_host(node_id to, const std::string& why) const {
  if (devices::accelerator_type() && directory_.devices(to).size() > 1 && directory_.traffic.note_over_the_host(to))
    log_.warn("transfers", [&] { return "tensors of devices go to node '" + directory_.name(to) + "' over the host: " + why; });
}

void outbox::warn_detached(const std::string& what) {
  constexpr std::size_t most_warnings = 1000;
  if (!options_.warn_detached || !log_.is_on(severity::warn)) return;
  {
    checked_lock lock(mutex_);
    if (warned_.size() >= most_warnings || !warned_.insert(what).second) return;
  }
  log_.warn(
    "calls",
    [&] {
      return what +
             ": a tensor that requires grad left outside any context and was detached, so no gradient comes back by it. Open a "
             "troupe::context around it (on another thread of the same program: a context::scope). If this is meant: a "
             "torch::NoGradGuard around it, or settings::warn_detached = false (--no-detached-warning)";
    },
    [&] { return std::hash<std::string>()(what); });
}

void outbox::warn_of_profiler(node_id to) {
  if (to == self_.id() || !torch::profiler::impl::profilerEnabled() || recorder_.profiling() ||
      has_warned_of_profiler_.exchange(true))
    return;
  log_.warn("tracing", [] {
    return "libtorch's profiler is on: it sees what runs on this thread, and nothing of what other nodes run for it. "
           "node::set_profiling(true) brings their spans into the trace of this node (node::collect_trace)";
  });
}

devices::staged outbox::compress(std::vector<at::Tensor>& tensors, std::vector<packing>& packings, sent_ahead& ahead,
                                 node_id to, wire_format format, std::uint64_t call_key) {
  // Elements that still come are those of a message that leaves exactly.
  if (format == wire_format::exact || (ahead.unfinished && !ahead.unfinished->coming.empty())) return {};
  if (const auto rest = std::exchange(ahead.unfinished, nullptr)) {
    TROUPE_EXPECT(departures_);
    auto exact = devices::finish(*rest, tensors, packings, departures_->stage);
    if (!exact.events.empty()) return exact;
  }
  pack_all(tensors, packings, format_for(to, format), memory, line_to(to, call_key));
  return {};
}

residual_line outbox::line_to(node_id to, std::uint64_t call_key) {
  return call_key != 0 ? residual_line{&residuals, to, call_key} : residual_line{};
}

wire_format outbox::format_for(node_id to, wire_format wanted) const {
  return wanted != wire_format::exact && to != self_.id() && reads(directory_.formats(to), wanted) ? wanted
                                                                                                   : wire_format::exact;
}

}  // namespace troupe::services
