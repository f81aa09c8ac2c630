// SPDX-License-Identifier: BSD-3-Clause
#include "distributed_rows.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include <ATen/ATen.h>

#include "troupe_rpc.hpp"
#include "../support/value_range.hpp"

namespace troupe::bench {

namespace {

using seconds = std::chrono::duration<double>;

template <class Run>
double seconds_of(Run&& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return seconds(std::chrono::steady_clock::now() - begin).count();
}

using driven_run = std::function<double(round_trips&)>;

at::Tensor leaf(std::int64_t elements = 1) { return at::ones({elements}).requires_grad_(); }

void expect(const at::Tensor& gradient, double value) {
  if (!gradient.defined() || gradient.flatten()[0].item<double>() != value)
    throw std::runtime_error("the gradient is wrong: expected " + std::to_string(value));
}

double small_call(round_trips& driver) {
  const auto x = at::ones({1});
  return seconds_of([&] { driver.call(x); });
}

double context_call_backward(round_trips& driver) {
  const auto x = leaf();
  return seconds_of([&] {
    driver.open();
    driver.backward(driver.call(x).sum());
    driver.close();
  });
}

driven_run backward_over(int trips, bool fast = false) {
  return [=](round_trips& driver) {
    driver.open();
    const auto x = leaf();
    auto y = x;
    for (int i = 0; i < trips; ++i) y = driver.call(y);
    const auto root = y.sum();
    const auto taken = seconds_of([&] { driver.backward(root, fast); });
    expect(driver.gradient(x), static_cast<double>(1 << trips));
    driver.close();
    return taken;
  };
}

double chain(round_trips& driver) {
  driver.open();
  const auto x = leaf();
  const auto root = driver.call_chain(x).sum();
  const auto taken = seconds_of([&] { driver.backward(root); });
  expect(driver.gradient(x), 32);
  driver.close();
  return taken;
}

double in_flight(round_trips& driver) {
  constexpr int calls = 16;
  const auto x = leaf();
  driver.open();
  const auto taken = seconds_of([&] {
    auto all = driver.call_at_once(x, calls);
    driver.backward(at::stack(all).sum());
  });
  expect(driver.gradient(x), 2 * calls);
  driver.close();
  return taken;
}

driven_run large_tensor(std::int64_t mebibytes) {
  return [mebibytes](round_trips& driver) {
    const auto x = leaf(mebibytes * 1024 * 256);
    driver.open();
    const auto taken = seconds_of([&] { driver.backward(driver.call(x).sum()); });
    expect(driver.gradient(x), 2);
    driver.close();
    return taken;
  };
}

definition beside(std::string name, double bar, int runs, driven_run run, wire least = {}) {
  return {.name = std::move(name), .bar = bar, .runs = runs, .run = std::move(run), .least = least};
}

/// Compares troupe's fast mode with its smart mode. Fast mode is in the column of PyTorch, which has only that mode. The ratio
/// is fast mode's time over smart mode's.
definition smart_over_fast() {
  auto measure = [](round_trips& troupe, std::uint16_t, bool quick) {
    const auto fast_run = backward_over(4, true);
    const auto smart_run = backward_over(4);
    std::vector<double> fast;
    std::vector<double> smart;
    for (int i = quick ? 2 : 1000; i > 0; --i) {
      fast.push_back(fast_run(troupe));
      smart.push_back(smart_run(troupe));
    }
    const results taken{median(std::move(fast)), median(std::move(smart)), 0};
    return figures{taken, taken.peer / taken.troupe};
  };
  return {.name = "smart_over_fast", .bar = 0.95, .alone = measure};
}

/// Compares the time per node of a forward and backward through `count` nodes in one process with the time per node for two nodes. Both
/// take turns, so that a machine that changes its speed slows both.
definition nodes(int count) {
  auto measure = [=](round_trips&, std::uint16_t, bool quick) {
    // More nodes get fewer runs, so that all visit the same number of nodes: two nodes are faster in their first 50 ms than later.
    const auto runs_of = [=](int nodes) { return quick ? 2 : 6'400 / nodes; };
    std::vector<double> costs;
    std::vector<double> ratios;
    for (int turn = 0; turn < (quick ? 1 : 3); ++turn) {
      const auto of_two = cost_of_nodes(2, runs_of(2));
      costs.push_back(count == 2 ? of_two : cost_of_nodes(count, runs_of(count)));
      ratios.push_back(costs.back() / of_two);
    }
    return figures{{0, percentile(std::move(costs), 0.5), 0}, percentile(std::move(ratios), 0.5)};
  };
  return {.name = "nodes_" + std::to_string(count), .unit = "us/node", .bar = 1.2, .at_most = true, .alone = measure};
}

definition contexts() {
  auto measure = [](round_trips&, std::uint16_t port, bool quick) {
    const auto grown = quick ? contexts_memory(port, 20, 60) : contexts_memory(port, 1000, 100'000);
    return figures{{0, grown, 0}, grown / 1024};
  };
  return {.name = "contexts_100000", .unit = "KiB more", .bar = 1, .at_most = true, .alone = measure};
}

}  // namespace

std::vector<definition> distributed_rows() {
  constexpr std::size_t mebibyte = 1 << 20;
  std::vector<definition> all{beside("small_call", 1.5, 3000, small_call, {1}),
                              beside("context_call_backward", 3, 1000, context_call_backward, {2}),
                              beside("backward_1", 3.5, 1000, backward_over(1), {1}),
                              beside("backward_4", 3, 500, backward_over(4), {4}),
                              beside("backward_16", 3.5, 200, backward_over(16), {16}),
                              beside("chain_4", 3, 500, chain, {3}),
                              beside("in_flight_16", 3, 300, in_flight),
                              smart_over_fast(),
                              beside("tensor_1mib", 1, 200, large_tensor(1), {2, mebibyte}),
                              beside("tensor_16mib", 1, 40, large_tensor(16), {2, 16 * mebibyte})};
  for (const int count : {2, 4, 8, 16, 32, 64}) all.push_back(nodes(count));
  all.push_back(contexts());
  return all;
}

double median(std::vector<double> runs) {
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end());
  return *middle * 1e6;
}

}  // namespace troupe::bench
