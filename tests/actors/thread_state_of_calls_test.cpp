// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <optional>

#include <ATen/autocast_mode.h>

#include <troupe/actors/node_access.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/support/thread_modes.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"

using troupe::call_arguments;
using troupe::call_reply;
using troupe::test::loopback_settings;

BOOST_AUTO_TEST_SUITE(thread_state_of_calls)

BOOST_AUTO_TEST_CASE(what_a_called_function_leaves_behind_ends_with_its_call) {
  troupe::node a{loopback_settings("a")};
  troupe::node b{loopback_settings("b")};
  std::atomic<int> found = 0;
  b.functions().add("look and leave", [&](call_arguments& arguments) {
    found += at::autocast::is_autocast_enabled(at::kCPU) || !c10::GradMode::is_enabled() ? 1 : 0;
    at::autocast::set_autocast_enabled(at::kCPU, true);
    c10::GradMode::set_enabled(false);
    return call_reply{arguments.tensors};
  });
  a.join("127.0.0.1", b.port());
  for (int i = 0; i < 20; ++i)  // more calls than threads, so that a thread runs several calls
    a.peer("b").call("look and leave", {at::ones({2})}).get();
  BOOST_TEST(found == 0);
}

namespace {

/// Node "a" calls "b", and "b" calls "c". Both have a weight that requires grad.
struct calls_in_a_row {
  explicit calls_in_a_row(const std::function<void(troupe::settings&)>& change = {}) {
    for (auto* each : {&a, &b, &c}) {
      auto options = loopback_settings(each == &a ? "a" : each == &b ? "b" : "c");
      if (each == &a && change) change(options);
      each->emplace(options);
    }
    b->functions().add("forward", [this](call_arguments& arguments) {
      const auto y = compute(0, arguments.tensor(0));
      return call_reply{{arguments.here.peer("c").call("forward", {y}).get().tensor(0) * 1}};
    });
    c->functions().add("forward", [this](call_arguments& arguments) { return call_reply{{compute(1, arguments.tensor(0))}}; });
    a->join("127.0.0.1", b->port());
    b->join("127.0.0.1", c->port());
    b->peer("c");
  }

  at::Tensor compute(std::size_t which, const at::Tensor& x) {
    seen.at(which) = troupe::support::modes_of_thread(true);
    return at::mm(x, weight);
  }
  at::Tensor forward() { return a->peer("b").call("forward", {x}).get().tensor(0); }
  bool both_saw(const troupe::compute_modes& modes) const { return seen.at(0) == modes && seen.at(1) == modes; }

  at::Tensor weight = at::ones({2, 2}).requires_grad_();
  at::Tensor x = at::ones({2, 2}).requires_grad_();
  std::array<troupe::compute_modes, 2> seen;
  std::optional<troupe::node> a;
  std::optional<troupe::node> b;
  std::optional<troupe::node> c;
};

const troupe::compute_modes without_graph{true, false, {}};

}  // namespace

// CW-3
BOOST_AUTO_TEST_CASE(a_caller_without_grad_mode_gets_no_graph_and_leaves_none_on_any_node) {
  calls_in_a_row nodes;
  const troupe::context pass(*nodes.a);
  {
    const torch::NoGradGuard no_graph;
    BOOST_TEST(!nodes.forward().requires_grad());
    BOOST_TEST(nodes.both_saw(without_graph));
  }
  BOOST_TEST(troupe::services_of(*nodes.b).contexts.find(pass.id()).record->release().sends.empty());
  BOOST_TEST(troupe::services_of(*nodes.c).contexts.find(pass.id()).record->release().sends.empty());
}

BOOST_AUTO_TEST_CASE(a_caller_with_grad_mode_gets_a_graph_whatever_the_call_before_was) {  // CW-3
  calls_in_a_row nodes;
  troupe::context pass(*nodes.a);
  {
    const torch::NoGradGuard no_graph;
    nodes.forward();
  }
  const auto y = nodes.forward();
  BOOST_TEST(y.requires_grad());
  BOOST_TEST(nodes.both_saw({}));
  pass.backward({y.sum()}).get();
  BOOST_TEST(pass.gradient(nodes.x).defined());
}

BOOST_AUTO_TEST_CASE(inference_mode_goes_with_a_call) {  // CW-3
  calls_in_a_row nodes;
  const c10::InferenceMode inference;
  const auto y = nodes.forward();
  BOOST_TEST(!y.requires_grad());
  BOOST_TEST(nodes.both_saw({true, true, {}}));
  BOOST_TEST(at::allclose(y, at::full({2, 2}, 4.0)));
}

BOOST_AUTO_TEST_CASE(autocast_goes_with_a_call_if_the_settings_of_the_caller_say_so) {  // CW-3
  const troupe::compute_modes in_half{false, false, {{at::kCPU, at::kBFloat16}}};
  const troupe::support::modes_scope scope(in_half);
  {
    calls_in_a_row nodes;
    BOOST_TEST((nodes.forward().scalar_type() == at::kFloat));
    BOOST_TEST(nodes.both_saw({}));
  }
  calls_in_a_row nodes([](troupe::settings& options) { options.carry_autocast = true; });
  BOOST_TEST((nodes.forward().scalar_type() == at::kBFloat16));
  BOOST_TEST(nodes.both_saw(in_half));  // "b" hands it on
  const troupe::support::modes_scope without(without_graph);
  nodes.b->self().call("forward", {nodes.x}).get();
  BOOST_TEST(nodes.both_saw(without_graph));
}

// FU-3
BOOST_AUTO_TEST_CASE(a_continuation_runs_in_the_modes_of_the_thread_that_added_it) {
  calls_in_a_row nodes;
  std::promise<troupe::compute_modes> seen;
  std::promise<void> let_go;
  nodes.c->functions().add("wait", [&](call_arguments&) {
    let_go.get_future().wait();
    return call_reply{};
  });
  auto waiting = nodes.b->peer("c").call("wait");
  {
    const torch::NoGradGuard no_graph;
    waiting.then([&](auto) { seen.set_value(troupe::support::modes_of_thread(true)); });
  }
  let_go.set_value();
  BOOST_TEST((seen.get_future().get() == without_graph));
}

BOOST_AUTO_TEST_SUITE_END()
