// SPDX-License-Identifier: BSD-3-Clause
#include "checks.hpp"

#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

#include <ATen/ATen.h>

#include <troupe/engine/cost_book.hpp>
#include <troupe/troupe.hpp>

#include "node_programs.hpp"

namespace troupe::bench {

namespace {

void compare_map(const gpu_device& where, two_nodes& nodes, gpu_report& report) {
  const auto x = at::rand({1 << 16}, where.device());
  const device_map to_cpu{{where.device().str(), "cpu"}};
  const auto came = nodes.a.peer(nodes.b->name()).with_devices(to_cpu).call("on_cpu", {x}).get().tensors;
  where.synchronize();
  report.same("nodes: a device map takes a tensor to the CPU, and the result back", {x + 1}, came);
}

/// A function of the device and one of the CPU, each of which ends once the other has begun. The worker of the CPU is busy, so that the
/// thread of the pass has one of the two, and a device worker the other.
void compare_device_worker(const gpu_device& where, node& here, gpu_report& report) {
  const std::string what = "passes: a device worker runs a function beside one of the CPU";
  if (where.device().is_cpu()) return report.skipped(what, "the CPU has no device worker");
  worker_team team(here, 1);
  std::promise<void> over;
  team.post([is_over = over.get_future().share()] { is_over.wait(); });
  const auto x = at::ones({8}).requires_grad_();
  const auto y = at::ones({8}, where.device()).requires_grad_();
  const std::vector<at::Tensor> products{x * 2, y * 3};
  std::vector<std::promise<void>> begun(2);
  std::vector<std::thread::id> threads(2);
  std::vector<char> in_time(2);
  for (std::size_t i = 0; i < 2; ++i) {
    team.costs().note(engine::cost_book::kind_of(*products[i].grad_fn(), {at::ones_like(products[i])}), 1'000'000'000);
    products[i].register_hook([&, i](const at::Tensor&) {
      threads[i] = std::this_thread::get_id();
      begun[i].set_value();
      in_time[i] = begun[1 - i].get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready ? 1 : 0;
    });
  }
  team.busy() = true;
  const auto gradients = troupe::grad({products[0].sum() + products[1].sum().cpu()}, {x, y}, {}, {.workers = &team});
  over.set_value();
  where.synchronize();
  if (in_time[0] == 0 || in_time[1] == 0 || threads[0] == threads[1])
    return report.failure(what, "one thread ran both functions");
  report.same(what, {at::full({8}, 2.0F), at::full({8}, 3.0F)}, {gradients[0], gradients[1].cpu()});
}

/// A pass for whose function the memory does not suffice fails, and says where. The nodes go on.
void compare_without_memory(const gpu_device& where, two_nodes& nodes, gpu_report& report) {
  const auto x = at::rand({8}, where.device()).requires_grad_();
  std::string text = "no error";
  {
    context pass(nodes.a);
    const auto y = nodes.call("asks_too_much", {x}).tensors.at(0);
    try {
      pass.backward({y.sum()}).get();
    } catch (const error& failed) {
      text = failed.what();
    }
  }
  for (const std::string part : {"gpu_check_b", "asks_too_much", "memory"})
    if (text.find(part) == std::string::npos)
      return report.failure("nodes: memory that runs out", "no " + part + " in: " + text);
  context pass(nodes.a);
  pass.backward({nodes.call("echo", {x * 3}).tensors.at(0).sum()}).get();
  const auto gradient = pass.gradient(x);
  where.synchronize();
  report.same("nodes: after memory ran out in a pass, the next pass", {at::full({8}, 3.0F)}, {gradient});
}

}  // namespace

void compare_nodes(const gpu_device& where, bool quick, gpu_report& report) {
  two_nodes nodes;
  const unsigned programs = quick ? 5 : 100;
  compare_programs(where, nodes, "nodes: gradients of passes with steps on two nodes and their CPUs", programs, {}, report);
  compare_without_memory(where, nodes, report);
  compare_compressed(where, nodes, "nodes: tensors that travel as bfloat16, float16 and int8", report);
  two_nodes with_workers(1);
  compare_programs(where, with_workers, "nodes: gradients of such passes with device workers", programs, {}, report);
  compare_device_worker(where, *with_workers.b, report);
  const std::string mixed = "nodes: gradients of such passes on 4 streams";
  const std::string map = "nodes: a device map";
  if (where.device().is_cpu()) {
    report.skipped(mixed, "the CPU has no streams");
    return report.skipped(map, "both nodes have the CPU alone");
  }
  compare_programs(where, nodes, mixed, programs, where.streams(4), report);
  compare_map(where, nodes, report);
}

void measure_nodes(const gpu_device& where, bool quick, gpu_report& report) {
  two_nodes nodes;
  measure_echoes(where, quick, nodes, "nodes", report);
}

}  // namespace troupe::bench
