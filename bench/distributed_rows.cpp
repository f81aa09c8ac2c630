// SPDX-License-Identifier: BSD-3-Clause
#include "distributed_rows.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include <ATen/ATen.h>

#include "troupe_rpc.hpp"

namespace troupe::bench {

namespace {

using seconds = std::chrono::duration<double>;

template <class Run>
double seconds_of(Run&& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return seconds(std::chrono::steady_clock::now() - begin).count();
}

/// One run of a row: returns the seconds of what the row measures.
using timed_run = std::function<double()>;
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

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Medians of runs in turns, a few at a time, so that what else the machine does meets all.
std::vector<double> medians(const std::vector<timed_run>& all, int runs) {
  constexpr int turn = 10;
  std::vector<std::vector<double>> taken(all.size());
  for (int done = 0; done < runs; done += turn)
    for (std::size_t who = 0; who < all.size(); ++who)
      for (int i = done == 0 ? -2 : 0; i < std::min(turn, runs - done); ++i)  // the first ones warm up
        if (const auto time = all[who](); i >= 0) taken[who].push_back(time);
  std::vector<double> result;
  for (auto& each : taken) result.push_back(median(std::move(each)) * 1e6);
  return result;
}

struct wire {
  int trips = 0;  // round trips that the row can't do without; 0: no floor
  std::size_t bytes = 200;
};

definition beside(std::string name, double bar, int runs, driven_run run, wire least = {}) {
  auto measure = [=](const contestants& all) {
    std::vector<timed_run> each{[&] { return run(all.peer); }, [&] { return run(all.troupe); }};
    if (least.trips > 0) each.push_back([&] { return all.floor.seconds(least.trips, least.bytes); });
    const auto taken = medians(each, all.quick ? 2 : runs);
    row result{.name = name, .unit = "us", .value = {taken[0], taken[1], taken.size() > 2 ? taken[2] : 0}, .bar = bar};
    result.ratio = taken[0] / taken[1];
    return result;
  };
  return {name, measure};
}

/// troupe's fast mode has the column of PyTorch, which knows nothing else; the ratio is of fast mode's time by smart mode's.
definition smart_over_fast() {
  auto measure = [](const contestants& all) {
    const auto fast = backward_over(4, true);
    const auto smart = backward_over(4);
    const auto taken = medians({[&] { return fast(all.troupe); }, [&] { return smart(all.troupe); }}, all.quick ? 2 : 1000);
    row result{.name = "smart_over_fast", .unit = "us", .value = {taken[0], taken[1], 0}, .bar = 0.95};
    result.ratio = taken[0] / taken[1];
    return result;
  };
  return {"smart_over_fast", measure};
}

/// A node's share of a forward and backward through so many in one process, by that where there are two.
definition nodes(int count) {
  auto name = "nodes_" + std::to_string(count);
  auto measure = [=](const contestants& all) {
    static double of_two = 0;
    const int runs = all.quick ? 2 : 200;
    if (of_two == 0) of_two = cost_of_nodes(2, runs);
    const auto cost = count == 2 ? of_two : cost_of_nodes(count, runs);
    row result{.name = name, .unit = "us/node", .value = {0, cost, 0}, .bar = 1.2, .at_most = true};
    result.ratio = cost / of_two;
    return result;
  };
  return {name, measure};
}

definition contexts() {
  auto measure = [](const contestants& all) {
    const auto grown = all.quick ? contexts_memory(all.troupe_port, 20, 60) : contexts_memory(all.troupe_port, 1000, 100'000);
    row result{.name = "contexts_100000", .unit = "KiB more", .value = {0, grown, 0}, .bar = 1, .at_most = true};
    result.ratio = grown / 1024;
    return result;
  };
  return {"contexts_100000", measure};
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

}  // namespace troupe::bench
