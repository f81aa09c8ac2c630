// SPDX-License-Identifier: BSD-3-Clause
// Rows of compressed tensors on a slow link, and of tensors of a device on a fast one.
#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <troupe/troupe.hpp>

#include "host_process.hpp"
#include "processes.hpp"
#include "rows.hpp"
#include "support/simulated_accelerator.hpp"

namespace troupe::bench {

namespace {

constexpr std::int64_t elements = std::int64_t{4} << 20;  // of float32: 16 MiB

/// Milliseconds that one pass takes.
double pass_ms(node& here, const peer& to, const at::Tensor& gradient, wire_format format) {
  context pass(here, format);
  const auto result = to.call("weights").get().tensor(0);
  backward_options options;
  options.gradients = {gradient};
  const auto begin = std::chrono::steady_clock::now();
  pass.backward({result}, options).get();
  return microseconds_since(begin) / 1e3;
}

void serve_weights(const process_arguments& with) {
  node here(with.node);
  here.functions().add("weights",
                       [weights = at::rand({elements}).requires_grad_()](call_arguments&) { return call_reply{{weights}}; });
  tell("ready", here.port());
  here.serve();
}

void send_gradients(const process_arguments& with) {
  const auto format = wire_format_named(with.text("format"));
  if (!format) throw std::runtime_error("there is no wire format '" + with.text("format") + "'");
  node here(with.node);
  const auto to = here.peer("b");
  const auto gradient = at::randn({elements});
  std::vector<double> exact;
  std::vector<double> packed;
  constexpr int to_warm = 2;  // windows have grown, and memory is there
  const auto count = static_cast<int>(with.number("count")) + to_warm;
  for (int i = 0; i < count; ++i) {
    const auto plain_ms = pass_ms(here, to, gradient, wire_format::exact);
    const auto packed_ms = pass_ms(here, to, gradient, *format);
    if (i < to_warm) continue;
    exact.push_back(plain_ms);
    packed.push_back(packed_ms);
  }
  tell("exact_ms", middle(std::move(exact)));
  tell("packed_ms", middle(std::move(packed)));
}

/// 16 MiB of gradients by a link of 1 Gbit/s. The column of peers has the time without compression.
row_definition wire(const std::string& name, const std::string& format, const std::string& called, double bound) {
  const auto measure = [=](bool quick) -> row {
    hosts::testbed all({"h1", "h2"});
    limit_both(all, "1gbit");
    const auto found = figures_of_two(all, "gradients", {{"format", format}, {"count", quick ? "1" : "15"}}, "weights");
    const auto exact = found.at("exact_ms");
    const auto packed = found.at("packed_ms");
    return {{exact, packed, 0}, packed / exact, "without compression " + short_number(exact) + " ms"};
  };
  return {name, "ms", at_most(bound),
          "A pass that sends 16 MiB of gradients over 1 Gbit/s: exact (peer) and as " + called + "; ratio: troupe by peer.",
          measure};
}

namespace simulated = test::simulated;

void serve_device(const process_arguments& with) {
  simulated::install();
  simulated::use_plain_memory();
  node here(with.node);
  here.functions().add("take", [](call_arguments& arguments) {
    simulated::synchronize();
    if (arguments.tensors.at(0).numel() == 0) throw std::runtime_error("expected a tensor with elements");
    return call_reply{};
  });
  tell("ready", here.port());
  here.serve();
}

/// Sends a tensor of the CPU and one of a device in turns, and copies the latter to the host.
void send_from_device(const process_arguments& with) {
  simulated::install();
  simulated::use_plain_memory();
  node here(with.node);
  const auto to = here.peer("b");
  const auto on_host = at::ones({static_cast<std::int64_t>(with.number("bytes"))}, at::kByte);
  const auto on_device = on_host.to(simulated::device());
  const auto ms = [](const auto& run) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    return microseconds_since(begin) / 1e3;
  };
  std::vector<double> wire;
  std::vector<double> copy;
  std::vector<double> both;
  constexpr int to_warm = 3;
  const auto count = static_cast<int>(with.number("count")) + to_warm;
  for (int i = 0; i < count; ++i) {
    const auto wire_ms = ms([&] { to.call("take", {on_host}).get(); });
    const auto copy_ms = ms([&] { on_host.copy_(on_device); });
    const auto both_ms = ms([&] { to.call("take", {on_device}).get(); });
    if (i < to_warm) continue;
    wire.push_back(wire_ms);
    copy.push_back(copy_ms);
    both.push_back(both_ms);
  }
  tell("wire_ms", middle(std::move(wire)));
  tell("copy_ms", middle(std::move(copy)));
  tell("both_ms", middle(std::move(both)));
}

/// A tensor of 64 MiB of a simulated device to another host. Without a limit the cores are busy with the wire, and have to make
/// the device's copies beside it.
row device_overlap(bool quick) {
  hosts::testbed all({"h1", "h2"});
  limit_both(all, "10gbit");
  const auto found =
    figures_of_two(all, "from_device", {{"bytes", std::to_string(64 << 20)}, {"count", quick ? "1" : "25"}}, "device");
  const auto wire = found.at("wire_ms");
  const auto copy = found.at("copy_ms");
  const auto both = found.at("both_ms");
  return {{std::max(wire, copy), both, 0},
          both / std::max(wire, copy),
          "copy to the host alone " + short_number(copy) + " ms, wire alone " + short_number(wire)};
}

}  // namespace

processes_by_name wire_processes() {
  return {
    {"weights", serve_weights}, {"gradients", send_gradients}, {"device", serve_device}, {"from_device", send_from_device}};
}

std::vector<row_definition> wire_rows() {
  return {wire("wire_bf16", "bf16", "bfloat16", 0.55),
          wire("wire_int8", "int8", "int8", 0.35),
          {"device_overlap", "ms", at_most(1.25),
           "A tensor of 64 MiB of a simulated device over 10 Gbit/s, until it is on the device there; peer: the larger of "
           "its copy to the host and of a call with a tensor of the CPU.",
           device_overlap}};
}

}  // namespace troupe::bench
