// SPDX-License-Identifier: BSD-3-Clause
// Rows of compressed tensors on a slow link.
#include "rows.hpp"

#include <chrono>
#include <string>

#include "host_part.hpp"

namespace troupe::bench {

namespace {

using hosts::testbed;

constexpr auto wire_patience = std::chrono::seconds(300);
constexpr int wire_port = 4001;

/// 16 MiB of gradients by a link of 1 Gbit/s. The column of peers has the time without compression.
hosts_row wire(const std::string& name, const std::string& format, double bar) {
  const auto measure = [=](const hosts_effort& effort) {
    testbed all({"h1", "h2"});
    for (const auto* each : {"h1", "h2"}) all.limit_rate(each, "1gbit");
    host_part node(all["h2"], "weights", node_options("b", wire_port), {});
    node.ready();
    host_part driver(all["h1"], "gradients", node_options("a", 0, {"h2:4001"}),
                     {{"format", format}, {"count", effort.quick ? "1" : "15"}});
    const auto found = driver.figures(wire_patience);
    const auto exact = found.at("exact_ms");
    const auto packed = found.at("packed_ms");
    return hosts_figures{{exact, packed, 0}, packed / exact, "without compression " + short_number(exact) + " ms"};
  };
  return {.name = name, .unit = "ms", .bar = bar, .at_most = true, .measure = measure};
}

}  // namespace

std::vector<hosts_row> wire_rows() { return {wire("wire_bf16", "bf16", 0.55), wire("wire_int8", "int8", 0.35)}; }

}  // namespace troupe::bench
