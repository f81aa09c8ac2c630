// SPDX-License-Identifier: BSD-3-Clause
#include "distributed.hpp"

#include <ATen/ATen.h>

namespace troupe::bench {

namespace {

template <class Run>
double seconds_of(Run&& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return seconds_since(begin);
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

/// Compares troupe's fast mode with its smart mode. Fast mode is in the column of PyTorch, which has only that mode. The ratio
/// is fast mode's time over smart mode's.
call_row smart_over_fast() {
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
  return {.name = "smart_over_fast",
          .text = "A pass in smart mode; peer: the same in fast mode, the only one of PyTorch.",
          .should_be = at_least(0.95),
          .alone = measure};
}

/// Compares the time per node of a forward and backward through `count` nodes in one process with the time per node for two nodes. Both
/// take turns, so that a machine that changes its speed slows both.
call_row nodes(int count) {
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
  return {.name = "nodes_" + std::to_string(count),
          .text = "Forward and backward through " + std::to_string(count) + " nodes in one process, by node" +
                  (count > 2 ? "; ratio: by one of two." : "."),
          .should_be = at_most(1.2),
          .alone = measure,
          .unit = "us/node"};
}

call_row contexts() {
  auto measure = [](round_trips&, std::uint16_t port, bool quick) {
    const auto grown = quick ? contexts_memory(port, 20, 60) : contexts_memory(port, 1000, 100'000);
    return figures{{0, grown, 0}, grown / 1024};
  };
  return {.name = "contexts_100000",
          .text = "Memory that stays after 100,000 contexts were opened and closed; ratio in MiB.",
          .should_be = at_most(1),
          .alone = measure,
          .unit = "KiB more"};
}

}  // namespace

std::vector<call_row> distributed_rows() {
  constexpr std::size_t mebibyte = 1 << 20;
  std::vector<call_row> all{
    {"small_call", "A call with two tensors of one element to another process and back.", at_least(1.5), 3000, small_call, {1}},
    {"context_call_backward",
     "A context is opened, a call is made in it, and gradients come back.",
     at_least(3),
     1000,
     context_call_backward,
     {2}},
    {"backward_1", "A distributed pass after one call.", at_least(3.5), 1000, backward_over(1), {1}},
    {"backward_4", "A distributed pass after 4 calls, one after the other.", at_least(3), 500, backward_over(4), {4}},
    {"backward_16", "A distributed pass after 16 calls, one after the other.", at_least(3.5), 200, backward_over(16), {16}},
    {"chain_4", "A pass through four processes in a chain.", at_least(3), 500, chain, {3}},
    {"in_flight_16", "16 calls at once, and the pass over them.", at_least(3), 300, in_flight},
    smart_over_fast(),
    {"tensor_1mib",
     "A call with 1 MiB and the pass that brings its gradient back.",
     at_least(1),
     200,
     large_tensor(1),
     {2, mebibyte}},
    {"tensor_16mib",
     "A call with 16 MiB and the pass that brings its gradient back.",
     at_least(1),
     40,
     large_tensor(16),
     {2, 16 * mebibyte}}};
  for (const int count : {2, 4, 8, 16, 32, 64}) all.push_back(nodes(count));
  all.push_back(contexts());
  return all;
}

double median(std::vector<double> runs) { return middle(std::move(runs)) * 1e6; }

}  // namespace troupe::bench
