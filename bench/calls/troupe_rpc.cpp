// SPDX-License-Identifier: BSD-3-Clause
#include "distributed.hpp"

#include <cmath>

#include <ATen/ATen.h>

#include <troupe/troupe.hpp>

#include "../support/other_process.hpp"

namespace troupe::bench {

namespace {

settings named(const std::string& name) {
  settings result;
  result.name = name;
  return result;
}

std::string stage(int position) { return "stage" + std::to_string(position); }

class driver : public round_trips {
 public:
  explicit driver(const std::vector<std::uint16_t>& ports) : here_(named(stage(0))), to_(here_.self()) {
    for (const auto port : ports) here_.join("127.0.0.1", port);
    for (std::size_t i = 1; i < ports.size(); ++i)
      here_.peer(stage(static_cast<int>(i))).call("meet", {}, {{"port", static_cast<std::int64_t>(ports[i])}}).get();
    to_ = here_.peer(stage(1));
  }

  void open() override { context_.emplace(here_); }
  void close() override { context_.reset(); }
  at::Tensor call(const at::Tensor& x) override { return to_.call("add", {x, x}).get().tensors.at(0); }
  std::vector<at::Tensor> call_at_once(const at::Tensor& x, int calls) override {
    std::vector<future<call_reply>> started;
    for (int i = 0; i < calls; ++i) started.push_back(to_.call("add", {x, x}));
    std::vector<at::Tensor> result;
    for (const auto& each : started) result.push_back(each.get().tensors.at(0));
    return result;
  }
  at::Tensor call_chain(const at::Tensor& x) override { return to_.call("chain", {x}).get().tensors.at(0); }
  void backward(const at::Tensor& root, bool fast) override {
    backward_options options;
    if (fast) options.mode = pass_mode::fast;
    context_->backward({root}, std::move(options)).get();
  }
  at::Tensor gradient(const at::Tensor& leaf) override { return context_->gradient(leaf); }

 private:
  node here_;
  peer to_;
  std::optional<context> context_;
};

}  // namespace

std::unique_ptr<round_trips> make_troupe_driver(const std::vector<std::uint16_t>& ports) {
  return std::make_unique<driver>(ports);
}

void serve_troupe(int position, const std::function<void(std::uint16_t)>& tell_port, int stop) {
  node here{named(stage(position))};
  here.functions().add(
    "add", [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0) + arguments.tensors.at(1)}}; });
  here.functions().add("chain", [position](call_arguments& arguments) {
    auto x = arguments.tensors.at(0) + arguments.tensors.at(0);
    if (position + 1 == chain_length) return call_reply{{x}};
    auto back = arguments.here.peer(stage(position + 1)).call("chain", {x}).get().tensors.at(0);
    return call_reply{{back + back}};
  });
  here.functions().add("meet", [](call_arguments& arguments) {
    arguments.here.join("127.0.0.1", static_cast<std::uint16_t>(get<std::int64_t>(arguments.values, "port")));
    return call_reply{};
  });
  here.functions().add("resident", [](call_arguments&) {
    return call_reply{{}, {{"kib", static_cast<std::int64_t>(resident_bytes() / 1024)}}};
  });
  tell_port(here.port());
  wait_for(stop);
}

double contexts_memory(std::uint16_t port, int few, int many) {
  node here{named("counter")};
  auto to = here.peer(here.join("127.0.0.1", port));
  const auto x = at::ones({1}).requires_grad_();
  const auto resident = [&] {
    const auto there = get<std::int64_t>(to.call("resident").get().values, "kib");
    return std::pair{resident_bytes() / 1024, static_cast<double>(there)};
  };
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) {
      context pass{here};
      pass.backward({to.call("add", {x, x}).get().tensors.at(0)}).get();
    }
  };
  run(few);
  const auto early = resident();
  run(many - few);
  const auto late = resident();
  return std::max({late.first - early.first, late.second - early.second, 1.0});
}

double cost_of_nodes(int count, int runs) {
  std::vector<std::unique_ptr<node>> nodes;
  for (int position = 0; position <= count; ++position) {
    auto options = named(stage(position));
    options.heartbeat =
      std::chrono::seconds(30);  // with a short interval, heartbeats of so many nodes would be much of the work
    nodes.push_back(std::make_unique<node>(options));
    nodes.back()->functions().add(
      "twice", [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0) + arguments.tensors.at(0)}}; });
  }
  auto& here = *nodes.front();
  std::vector<peer> stages;
  for (int position = 1; position <= count; ++position)
    stages.push_back(here.peer(here.join("127.0.0.1", nodes[position]->port())));
  std::vector<double> taken;
  for (int i = -2; i < runs; ++i) {
    const auto x = at::ones({1}, at::kDouble).requires_grad_();
    const auto begin = std::chrono::steady_clock::now();
    context pass{here};
    auto y = x;
    for (const auto& each : stages) y = each.call("twice", {y}).get().tensors.at(0);
    pass.backward({y}).get();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    if (i >= 0) taken.push_back(time.count() * 1e6 / count);
    if (pass.gradient(x).item<double>() != std::ldexp(1.0, count))
      throw std::runtime_error("the gradient over the nodes is wrong");
  }
  return middle(std::move(taken));
}

}  // namespace troupe::bench
