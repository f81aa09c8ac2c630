// SPDX-License-Identifier: BSD-3-Clause
// Rows of compressed tensors on a slow link.
#include <ATen/ATen.h>

#include <troupe/troupe.hpp>

#include "host_process.hpp"
#include "processes.hpp"
#include "rows.hpp"

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

}  // namespace

processes_by_name wire_processes() { return {{"weights", serve_weights}, {"gradients", send_gradients}}; }

std::vector<row_definition> wire_rows() {
  return {wire("wire_bf16", "bf16", "bfloat16", 0.55), wire("wire_int8", "int8", "int8", 0.35)};
}

}  // namespace troupe::bench
