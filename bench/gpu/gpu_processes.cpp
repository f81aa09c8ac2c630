// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>

#include <ATen/ATen.h>

#include "../support/stopwatch.hpp"
#include "checks.hpp"
#include "node_programs.hpp"

namespace troupe::bench {

namespace {

/// Tensors of several sizes and types, of which each is gone before the next one is made.
void compare_echoes(const gpu_device& where, bool quick, two_nodes& nodes, gpu_report& report) {
  const std::int64_t most = quick ? 1 << 17 : 1 << 24;
  std::vector<at::Tensor> expected, came;
  constexpr int before_they_agree = 4;
  for (int i = 0; i < before_they_agree; ++i) nodes.call("echo", {at::ones({1 << 16}, where.device())});
  for (const auto type : {at::kFloat, at::kHalf, at::kLong, at::kByte, at::kBool}) {
    for (const std::int64_t size :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 14, (std::int64_t{1} << 16) + 1, most}) {
      expected.push_back((at::rand({size}) * 100).to(type));
      came.push_back(nodes.call("echo", {expected.back().to(where.device())}).tensors.at(0).cpu());
    }
  }
  const auto square = at::rand({512, 512});
  const auto views_of = [](const at::Tensor& x) { return std::array{x.t(), x.slice(0, 1, 512, 2), x.select(1, 3)}; };
  for (const auto& each : views_of(square)) expected.push_back(each);
  for (const auto& each : views_of(square.to(where.device()))) came.push_back(nodes.call("echo", {each}).tensors.at(0).cpu());
  report.same("processes: tensors of many sizes, there and back", expected, came);
}

/// The seconds of a call with each of two tensors there and back. The first one stands for the peer.
results echoes(const gpu_device& where, bool quick, two_nodes& nodes, const std::array<at::Tensor, 2>& tensors,
               std::optional<wire_format> format = {}) {
  workload work;
  work.before = [&] { where.synchronize(); };
  work.run = [&](runner which) {
    nodes.call("echo", {tensors.at(which == runner::peer ? 0 : 1)}, {}, format);
    where.synchronize();
  };
  return measure("processes", work, quick ? effort::quick() : effort{0.05, 6, 3});
}

}  // namespace

void compare_processes(const gpu_device& where, other_node& there, bool quick, gpu_report& report) {
  two_nodes nodes(there);
  const unsigned programs = quick ? 5 : 100;
  const std::string what = "processes: gradients of passes with steps in two processes";
  compare_echoes(where, quick, nodes, report);
  compare_programs(where, nodes, what, programs, {}, report);
  if (where.device().is_cpu())
    report.skipped(what + ", on 4 streams", "the CPU has no streams");
  else
    compare_programs(where, nodes, what + ", on 4 streams", programs, where.streams(4), report);
  compare_compressed(where, nodes, "processes: tensors that travel as bfloat16, float16 and int8", report);
}

void measure_processes(const gpu_device& where, other_node& there, bool quick, gpu_report& report) {
  two_nodes nodes(there);
  measure_echoes(where, quick, nodes, "processes", report);
  report.note("processes: how they are connected", nodes.transport());
  const auto small = at::rand({8});
  const auto call = echoes(where, quick, nodes, {small, small.to(where.device())});
  char text[96];
  std::snprintf(text, sizeof text, "with one of the CPU %.1f µs, of the device %.1f µs", call.peer * 1e6, call.troupe * 1e6);
  report.at_most("processes: what a small tensor of the device adds to a call, µs", text, (call.troupe - call.peer) * 1e6, 60);
  const auto large = at::rand({quick ? 1 << 12 : 1 << 22});
  const auto coded = echoes(where, quick, nodes, {large, large.to(where.device())}, wire_format::int8);
  std::snprintf(text, sizeof text, "of the CPU %.2f ms, of the device %.2f ms", coded.peer * 1e3, coded.troupe * 1e3);
  report.at_most("processes: a call with 16 MiB that travel as int8, there and back", text, coded.troupe / coded.peer, 0.2);
}

}  // namespace troupe::bench
