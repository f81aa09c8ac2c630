// SPDX-License-Identifier: BSD-3-Clause
// The measurements of the suite in which nodes take part.
#include "suite.hpp"

#include <mutex>

#include <ATen/ATen.h>

#include <troupe/actors/certificates/authority.hpp>

#include "../support/failing_passes.hpp"

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr int steps_of_pass = 8;

struct empty_module final : module {
  call_reply call(const std::string&, call_arguments&) override { return {}; }
  named_tensors parameters() override { return {}; }
};

settings settings_of(const std::string& name, const pair_settings& how, const scratch_folder& kits) {
  settings result;
  result.name = name;
  result.network = how.by == carrier::caf ? network_kind::caf : network_kind::troupe;
  result.insecure = how.by == carrier::caf;
  result.log_level = severity::error;  // without the warning of --insecure for each pair
  result.shared_memory = how.by == carrier::shared_memory;
  if (how.by == carrier::tls) result.certificates = kit_in(kits, name);
  result.short_work = how.short_work;
  result.workers = how.workers;
  result.configure = how.configure;
  return result;
}

void add_functions(node& here) {
  here.functions().add(
    "add", [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0) + arguments.tensors.at(1)}}; });
  here.functions().add("echo", [](call_arguments& arguments) { return call_reply{arguments.tensors}; });
  here.functions().add("spin", [](call_arguments& arguments) {
    for (const auto until = clock::now() + std::chrono::microseconds(get<std::int64_t>(arguments.values, "us"));
         clock::now() < until;) {
    }
    return call_reply{};
  });
  here.functions().add("compute", [](call_arguments&) {
    compute(std::chrono::milliseconds(50));
    return call_reply{};
  });
  here.functions().add("resident", [](call_arguments&) { return call_reply{{}, {{"bytes", resident_bytes()}}}; });
  here.functions().add("forget_peak", [](call_arguments&) {
    forget_peak();
    return call_reply{};
  });
  here.functions().add("peak", [](call_arguments&) { return call_reply{{}, {{"bytes", peak_bytes()}}}; });
  add_throwing_function(here);
  add_module_type(here, "empty", [](const attributes&) { return std::make_shared<empty_module>(); });
}

void serve(const settings& options, const std::function<void(std::uint16_t)>& tell_port, int stop) {
  node here{options};
  add_functions(here);
  tell_port(here.port());
  wait_for(stop);
}

}  // namespace

std::string kit_in(const scratch_folder& kits, const std::string& name) { return kits.path() / (name + ".pem"); }

void make_kits(const scratch_folder& kits) {
  using certificates::authority;
  const auto now = std::chrono::system_clock::now();
  const auto of_cluster = authority::create(kits.path() / "authority", "bench", now);
  for (const std::string name : {"a", "b"})
    certificates::write_kit(of_cluster.issue(name, "member", {"127.0.0.1"}, now, authority::own_life), kit_in(kits, name));
}

node_pair::node_pair(pair_settings how)
    : server_([&](int stop, const auto& tell) {
        if (how.by == carrier::tls) make_kits(kits_);
        serve(settings_of("b", how, kits_), tell, stop);
      }) {
  const auto port = server_.told();
  here_.emplace(settings_of("a", how, kits_));
  to_.emplace(here_->peer(here_->join("127.0.0.1", port)));
}

void compute(std::chrono::microseconds for_long) {
  auto x = at::ones({4096});
  for (const auto until = clock::now() + for_long; clock::now() < until;) x = x.sin();
}

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
      const auto ms = microseconds_since(begin) / 1e3;
      const std::lock_guard lock(mutex);
      taken.push_back(ms);
    });
  }
  for (const auto& each : passes) each.get();
  for (;;) {  // a continuation may still run when get() returns
    std::this_thread::yield();
    const std::lock_guard lock(mutex);
    if (taken.size() == contexts.size()) return taken;
  }
}

namespace {

/// By how many bytes the memory of this process and that of the other node grow for each of `count` things. `make(n)` makes n of them.
template <class Make>
std::vector<double> growth_for_each(const node_pair& nodes, int count, Make make) {
  make(count / 4);  // what is made once is there before the first look
  const auto here = resident_bytes();
  const auto there = nodes.resident_there();
  make(count);
  return {(resident_bytes() - here) / count, (nodes.resident_there() - there) / count};
}

}  // namespace

std::vector<double> bytes_of_context(int count) {
  node_pair nodes({});
  std::vector<std::unique_ptr<context>> idle;
  idle.reserve(static_cast<std::size_t>(count / 4 + count));
  return growth_for_each(nodes, count, [&](int more) {
    const auto x = at::ones({1});  // needs no gradient: the context is open on both nodes and has no graph
    for (int i = 0; i < more; ++i) idle.push_back(open_context(nodes.here(), [&] { nodes.to().call("add", {x, x}).get(); }));
  });
}

std::vector<double> bytes_of_object(int count) {
  node_pair nodes({});
  std::vector<remote_module> idle;
  const auto grown = growth_for_each(nodes, count, [&](int more) {
    for (int i = 0; i < more; ++i) idle.push_back(nodes.to().create("empty"));
  });
  return {grown[1], grown[0]};
}

}  // namespace troupe::bench
