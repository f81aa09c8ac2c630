// SPDX-License-Identifier: BSD-3-Clause
// The parts of the suite in which nodes take part.
#include <malloc.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include <ATen/ATen.h>

#include <troupe/troupe.hpp>

#include "other_process.hpp"
#include "suite_parts.hpp"

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;
using milliseconds = std::chrono::duration<double, std::milli>;

constexpr int steps_of_pass = 8;

settings settings_of(const std::string& name, carrier by) {
  settings result;
  result.name = name;
  result.network = by == carrier::caf ? network_kind::caf : network_kind::troupe;
  result.insecure = by == carrier::caf;
  result.shared_memory = by == carrier::shared_memory;
  return result;
}

/// Computes for about so long.
void compute(std::chrono::milliseconds for_long) {
  auto x = at::ones({4096});
  for (const auto until = clock::now() + for_long; clock::now() < until;) x = x.sin();
}

/// The memory of this process that is in RAM, in bytes, after unused memory of the allocator was given back.
double resident_bytes() {
  ::malloc_trim(0);
  std::ifstream status("/proc/self/statm");
  double total = 0;
  double resident = 0;
  status >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// A module without parameters: what libtorch takes for tensors is not measured.
struct empty_module final : module {
  call_reply call(const std::string&, call_arguments&) override { return {}; }
  named_tensors parameters() override { return {}; }
};

void serve(carrier by, const std::function<void(std::uint16_t)>& tell_port, int stop) {
  node here{settings_of("b", by)};
  here.functions().add(
    "add", [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0) + arguments.tensors.at(1)}}; });
  here.functions().add("echo", [](call_arguments& arguments) { return call_reply{arguments.tensors}; });
  here.functions().add("compute", [](call_arguments&) {
    compute(std::chrono::milliseconds(50));
    return call_reply{};
  });
  here.functions().add("resident", [](call_arguments&) { return call_reply{{}, {{"bytes", resident_bytes()}}}; });
  add_module_type(here, "empty", [](const attributes&) { return std::make_shared<empty_module>(); });
  tell_port(here.port());
  char word;
  [[maybe_unused]] const auto asked = ::read(stop, &word, 1);
}

/// This process's node, and the node "b" of another process.
struct two_nodes {
  explicit two_nodes(carrier by) : server([by](int stop, const auto& tell) { serve(by, tell, stop); }), port(server.told()) {
    here.emplace(settings_of("a", by));
    to.emplace(here->peer(here->join("127.0.0.1", port)));
  }

  double resident_there() const { return get<double>(to->call("resident").get().values, "bytes"); }

  other_process server;
  std::uint16_t port;
  std::optional<node> here;
  std::optional<peer> to;
};

/// Contexts of this thread do not nest, so another thread opens the context and ends.
template <class Run>
std::unique_ptr<context> open_context(node& here, Run within) {
  std::unique_ptr<context> result;
  std::thread([&] {
    result = std::make_unique<context>(here);
    within();
  }).join();
  return result;
}

}  // namespace

std::vector<double> small_calls(carrier by, int runs) {
  const two_nodes nodes(by);
  const auto x = at::ones({1});
  std::vector<double> taken;
  for (int i = -warm_up_of(runs); i < runs; ++i) {
    const auto begin = clock::now();
    nodes.to->call("add", {x, x}).get();
    const std::chrono::duration<double, std::micro> time = clock::now() - begin;
    if (i >= 0) taken.push_back(time.count());
  }
  return taken;
}

std::vector<double> echo_calls(carrier by, int runs, std::size_t bytes) {
  const two_nodes nodes(by);
  const auto x = at::ones({static_cast<std::int64_t>(bytes)}, at::kByte);
  std::vector<double> taken;
  for (int i = -warm_up_of(runs); i < runs; ++i) {
    const auto begin = clock::now();
    nodes.to->call("echo", {x}).get();
    const std::chrono::duration<double, std::micro> time = clock::now() - begin;
    if (i >= 0) taken.push_back(time.count());
  }
  return taken;
}

std::vector<double> answers_under_load(int runs) {
  two_nodes nodes(carrier::shared_memory);
  std::atomic<bool> over{false};
  std::vector<std::thread> busy;
  const auto cores = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < 2 * cores - 1; ++i)
    busy.emplace_back([&] {
      while (!over) compute(std::chrono::milliseconds(5));
    });
  busy.emplace_back([&] {  // keeps the one worker of the other node busy
    while (!over) nodes.to->call("compute").get();
  });
  std::vector<double> taken;
  for (int i = -5; i < runs; ++i) {
    const auto begin = clock::now();
    nodes.to->status();
    const milliseconds time = clock::now() - begin;
    if (i >= 0) taken.push_back(time.count());
  }
  over = true;
  for (auto& each : busy) each.join();
  return taken;
}

std::vector<double> times_of_passes(int count) {
  two_nodes nodes(carrier::shared_memory);
  std::vector<std::unique_ptr<context>> contexts;
  std::vector<at::Tensor> roots(static_cast<std::size_t>(count));
  for (auto& root : roots)
    contexts.push_back(open_context(*nodes.here, [&] {
      root = at::ones({1}).requires_grad_();
      for (int step = 0; step < steps_of_pass; ++step) root = nodes.to->call("add", {root, root}).get().tensors.at(0);
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
  two_nodes nodes(carrier::shared_memory);
  std::vector<std::unique_ptr<context>> idle;
  idle.reserve(static_cast<std::size_t>(count / 4 + count));
  const auto open = [&](int more) {
    const auto x = at::ones({1});  // needs no gradient: the context is open on both nodes and has no graph
    for (int i = 0; i < more; ++i) idle.push_back(open_context(*nodes.here, [&] { nodes.to->call("add", {x, x}).get(); }));
  };
  open(count / 4);  // what is made once is there before the first look
  const auto here = resident_bytes();
  const auto there = nodes.resident_there();
  open(count);
  return {(resident_bytes() - here) / count, (nodes.resident_there() - there) / count};
}

std::vector<double> bytes_of_object(int count) {
  two_nodes nodes(carrier::shared_memory);
  std::vector<remote_module> idle;
  const auto make = [&](int more) {
    for (int i = 0; i < more; ++i) idle.push_back(nodes.to->create("empty"));
  };
  make(count / 4);
  const auto here = resident_bytes();
  const auto there = nodes.resident_there();
  make(count);
  return {(nodes.resident_there() - there) / count, (resident_bytes() - here) / count};
}

}  // namespace troupe::bench
