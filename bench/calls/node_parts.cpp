// SPDX-License-Identifier: BSD-3-Clause
// The parts of the suite in which nodes take part.
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <ATen/ATen.h>

#include <troupe/troupe.hpp>

#include "node_pair.hpp"
#include "exchanges.hpp"

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;
using milliseconds = std::chrono::duration<double, std::milli>;

constexpr int steps_of_pass = 8;

}  // namespace

std::vector<double> small_calls(carrier by, int runs) {
  const node_pair nodes({.by = by});
  const auto x = at::ones({1});
  return times_of(runs, [&] { nodes.to().call("add", {x, x}).get(); });
}

std::vector<double> echo_calls(carrier by, int runs, std::size_t bytes) {
  const node_pair nodes({.by = by});
  const auto x = at::ones({static_cast<std::int64_t>(bytes)}, at::kByte);
  return times_of(runs, [&] { nodes.to().call("echo", {x}).get(); });
}

std::vector<double> times_of_passes(int count) {
  node_pair nodes({});
  std::vector<std::unique_ptr<context>> contexts;
  std::vector<at::Tensor> roots(static_cast<std::size_t>(count));
  for (auto& root : roots)
    contexts.push_back(open_context(nodes.here(), [&] {
      root = at::ones({1}).requires_grad_();
      for (int step = 0; step < steps_of_pass; ++step) root = nodes.to().call("add", {root, root}).get().tensors.at(0);
    }));
  std::mutex mutex;
  std::vector<double> taken;
  std::vector<future<done>> passes;
  const auto begin = clock::now();
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    passes.push_back(contexts[i]->backward({roots[i]}));
    passes.back().then([&](const future<done>&) {
      const milliseconds time = clock::now() - begin;
      const std::lock_guard lock(mutex);
      taken.push_back(time.count());
    });
  }
  for (const auto& each : passes) each.get();
  for (;;) {  // a continuation may still run when get() returns
    std::this_thread::yield();
    const std::lock_guard lock(mutex);
    if (taken.size() == contexts.size()) return taken;
  }
}

std::vector<double> bytes_of_context(int count) {
  node_pair nodes({});
  std::vector<std::unique_ptr<context>> idle;
  idle.reserve(static_cast<std::size_t>(count / 4 + count));
  const auto open = [&](int more) {
    const auto x = at::ones({1});  // needs no gradient: the context is open on both nodes and has no graph
    for (int i = 0; i < more; ++i) idle.push_back(open_context(nodes.here(), [&] { nodes.to().call("add", {x, x}).get(); }));
  };
  open(count / 4);  // what is made once is there before the first look
  const auto here = resident_bytes();
  const auto there = nodes.resident_there();
  open(count);
  return {(resident_bytes() - here) / count, (nodes.resident_there() - there) / count};
}

std::vector<double> bytes_of_object(int count) {
  node_pair nodes({});
  std::vector<remote_module> idle;
  const auto make = [&](int more) {
    for (int i = 0; i < more; ++i) idle.push_back(nodes.to().create("empty"));
  };
  make(count / 4);
  const auto here = resident_bytes();
  const auto there = nodes.resident_there();
  make(count);
  return {(nodes.resident_there() - there) / count, (resident_bytes() - here) / count};
}

}  // namespace troupe::bench
