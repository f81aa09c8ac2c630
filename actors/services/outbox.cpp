// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/outbox.hpp>

#include <algorithm>
#include <functional>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/profiler/orchestration/observer.h>

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
  if (staged.events.empty()) compress(payload.tensors, payload.packings, to, format);
  payload.devices = staged.devices;
  payload.ahead.made = staged.made;
  result.arriving = std::move(staged);
  return result;
}

devices::staged outbox::stage(std::vector<at::Tensor> tensors, node_id to, wire_format format) {
  TROUPE_EXPECT(departures_);
  const auto may_read = [&] {
    if (!options_.direct_memory || to == self_.id() || format_for(to, format) != wire_format::exact) return false;
    if (!is_loopback(directory_.host(to)) || directory_.traffic.is_over_the_host(to)) return false;
    const auto there = directory_.devices(to);
    return std::any_of(there.begin(), there.end(), [](const auto& each) { return !each.is_cpu(); });
  };
  const bool offers = std::any_of(tensors.begin(), tensors.end(), devices::is_offerable) && may_read();
  return departures_->stage.to_host(std::move(tensors), offers);
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

void outbox::compress(std::vector<at::Tensor>& tensors, std::vector<packing>& packings, node_id to, wire_format format,
                      std::uint64_t call_key) {
  if (format == wire_format::exact) return;
  residual_line line;
  if (call_key != 0) line = {&residuals, to, call_key};
  pack_all(tensors, packings, format_for(to, format), memory, line);
}

wire_format outbox::format_for(node_id to, wire_format wanted) const {
  return wanted != wire_format::exact && to != self_.id() && reads(directory_.formats(to), wanted) ? wanted
                                                                                                   : wire_format::exact;
}

}  // namespace troupe::services
