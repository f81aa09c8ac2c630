// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/node_access.hpp>
#include <troupe/actors/passes/context_actor.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/troupe.hpp>

#include "actors/deterministic_system.hpp"

namespace troupe::test {

constexpr int orders = 300;

/// Three nodes that know each other: "a", which is the driver, "b" and "c". Each node has a weight.
struct cast : deterministic_system {
  /// `logs`: a folder, in which each node writes a log at level info. Empty: the nodes log as by default.
  explicit cast(std::uint64_t seed, const std::string& logs = {}) : random(seed) {
    for (auto name : {"a", "b", "c"}) {
      troupe::settings options;
      options.name = name;
      options.deadline = std::chrono::hours(1);
      if (!logs.empty()) options.log_level = troupe::severity::info;
      if (!logs.empty()) options.log_file = logs + "/" + name;
      nodes.emplace(name, std::make_unique<troupe::node>(std::move(options), system));
    }
    for (auto& [one, x] : nodes)
      for (auto& [other, y] : nodes)
        if (one != other) x->introduce(*y);
    for (auto& [name, here] : nodes) {
      weights.emplace(name, torch::full({2}, 2.0, torch::requires_grad()));
      here->functions().add("times_weight", [w = weights.at(name)](troupe::call_arguments& arguments) {
        return troupe::call_reply{{arguments.tensors.at(0) * w}};
      });
      here->functions().add("gathered", [w = weights.at(name)](troupe::call_arguments& arguments) {
        return troupe::call_reply{{arguments.gradients->find(w)}};
      });
      here->functions().add("refuse_backward", [](troupe::call_arguments& arguments) {
        auto x = arguments.tensors.at(0) * 2;
        x.register_hook([](at::Tensor) -> at::Tensor { throw std::runtime_error("hook refuses"); });
        return troupe::call_reply{{x}};
      });
    }
    run();
  }

  ~cast() {
    for (auto& [name, here] : nodes) here->stop();
    run();
    nodes.clear();
    run();
  }

  /// Runs actors, one at a time in a random order, until no actor has anything to do.
  void run() {
    while (step()) {
    }
  }

  bool step() { return deterministic_system::step(random()); }

  void advance_time(std::chrono::milliseconds by) {
    scheduler().advance_time(by);
    for (const auto& [name, here] : nodes) services_of(*here).deadlines.advance(by);
    run();
  }

  /// Runs a random number of steps, less than `limit`.
  void run_up_to(std::uint64_t limit) {
    for (auto steps = random() % limit; steps > 0; --steps) step();
  }

  /// Calls the nodes one after another. Each call multiplies x by the weight of the node.
  at::Tensor through(std::initializer_list<const char*> nodes, at::Tensor x) {
    for (const auto* to : nodes) x = call(to, "times_weight", x);
    return x;
  }

  at::Tensor call(const std::string& to, const std::string& function, const at::Tensor& x) {
    auto reply = peer(to).call(function, {x});
    run();
    return reply.get().tensors.at(0);
  }

  using replies = std::shared_ptr<std::vector<troupe::future<troupe::call_reply>>>;

  /// Adds a function "hand_on" to node `via`. The function calls node `to` and does not wait for the answer. Returns those
  /// calls.
  replies hand_on(const std::string& via, const std::string& to) {
    auto kept = std::make_shared<replies::element_type>();
    node(via).functions().add("hand_on", [this, to, kept](troupe::call_arguments& arguments) {
      kept->push_back(troupe::peer(arguments.here, to, node(to).id()).call("times_weight", {arguments.tensors.at(0)}));
      return troupe::call_reply{};
    });
    return kept;
  }

  /// Tells node `who` that node `other` is down.
  void tell_down(const std::string& who, const std::string& other) {
    caf::anon_send(troupe::services_of(node(who)).actors.gateway,
                   troupe::contracts::peer_down{{other, node(other).id(), "127.0.0.1", 0}, "the test says so"});
  }

  troupe::peer peer(const std::string& name) { return {node("a"), name, node(name).id()}; }

  at::Tensor gradient(const troupe::context& pass, const at::Tensor& leaf) {
    caf::scoped_actor self{system};
    auto request = self->request(troupe::services_of(node("a")).contexts.find(pass.id()).actor, caf::infinite,
                                 troupe::support::gradients_atom::value);
    run();
    at::Tensor result;
    request.receive(
      [&](const troupe::contracts::gradients_ptr& all) { result = all ? all->find(leaf) : at::Tensor{}; },
      [](const caf::error& reason) { BOOST_FAIL("the context does not answer: " << troupe::to_exception(reason).what()); });
    return result;
  }

  troupe::node& node(const std::string& name) { return *nodes.at(name); }

  std::mt19937_64 random;
  std::map<std::string, std::unique_ptr<troupe::node>> nodes;
  std::map<std::string, at::Tensor> weights;
};

inline bool same(const at::Tensor& x, const at::Tensor& y) { return x.defined() && y.defined() && at::equal(x, y); }

inline at::Tensor input() { return torch::tensor({1.0, 3.0}, torch::requires_grad()); }

}  // namespace troupe::test
