// SPDX-License-Identifier: BSD-3-Clause
// Distributed passes whose large functions run on the workers of their nodes (settings::pass_workers).
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <boost/test/unit_test.hpp>

#include <troupe/actors/node_access.hpp>
#include <troupe/engine/cpu_workers.hpp>
#include <troupe/troupe.hpp>

#include "actors/deterministic_system.hpp"
#include "actors/loopback_nodes.hpp"
#include "engine/notifying_hook.hpp"
#include "support/no_more_threads.hpp"
#include "support/thread_name.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

settings settings_with_workers(const std::string& name, std::size_t count) {
  auto result = loopback_settings(name);
  result.pass_workers = count;
  return result;
}

/// The sum of eight independent branches over x, each with functions that take longer than a hand-over. `notify` is called when one
/// runs backwards.
at::Tensor branches(const at::Tensor& x, const std::function<void()>& notify) {
  std::vector<at::Tensor> parts;
  for (int i = 0; i < 8; ++i) {
    parts.push_back((x * (i + 0.3)).sin().exp());
    watch(parts.back(), notify);
  }
  return at::stack(parts).sum(0);
}

/// Node "a" has a part of the graph before and after that of node "b".
struct nodes_with_workers {
  explicit nodes_with_workers(std::size_t pass_workers)
      : a(settings_with_workers("a", pass_workers)), b(settings_with_workers("b", pass_workers)) {
    b.functions().add("branches", [this](call_arguments& arguments) {
      return call_reply{{branches(arguments.tensors.at(0) * weight, [this] { of_b(); })}};
    });
    b.functions().add("gradient",
                      [this](call_arguments& arguments) { return call_reply{{arguments.gradients->find(weight)}}; });
    a.join("127.0.0.1", b.port());
  }

  /// One pass; returns the gradients of the leaf of `a` and of the leaf of `b`.
  std::vector<at::Tensor> pass() {
    context within(a);
    const auto x = at::linspace(0, 1, 100'000).requires_grad_();
    const auto before = branches(x, [this] { of_a(); });
    const auto there = a.peer("b").call("branches", {before}).get().tensors.at(0);
    within.backward({branches(there, [this] { of_a(); }).sum()}).get();
    return {within.gradient(x), a.peer("b").call("gradient").get().tensors.at(0)};
  }

  std::function<void()> of_a = [] {};
  std::function<void()> of_b = [] {};
  at::Tensor weight = at::linspace(1, 2, 100'000).requires_grad_();
  node a;
  node b;
};

bool on_a_worker() { return thread_name() == "troupe.worker"; }

}  // namespace

BOOST_AUTO_TEST_SUITE(pass_workers)

BOOST_AUTO_TEST_CASE(run_large_functions_on_every_node_and_keep_the_bits) {
  nodes_with_workers serial(0);
  std::atomic<int> elsewhere{0};
  serial.of_a = serial.of_b = [&] { elsewhere += on_a_worker() ? 1 : 0; };
  const auto expected = serial.pass();
  nodes_with_workers parallel(2);
  std::atomic<int> by_workers_of_a{0};
  std::atomic<int> by_workers_of_b{0};
  parallel.of_a = [&] { by_workers_of_a += on_a_worker() ? 1 : 0; };
  parallel.of_b = [&] { by_workers_of_b += on_a_worker() ? 1 : 0; };
  int passes = 0;
  BOOST_TEST(becomes_true([&] {
    const auto found = parallel.pass();
    for (std::size_t i = 0; i < expected.size(); ++i) BOOST_TEST(at::equal(found[i], expected[i]), "pass " << passes);
    return ++passes >= 10 && by_workers_of_a > 0 && by_workers_of_b > 0;
  }));
  BOOST_TEST(elsewhere == 0);
}

BOOST_AUTO_TEST_CASE(an_error_on_a_worker_names_the_node_and_the_next_pass_succeeds) {
  nodes_with_workers nodes(2);
  const auto expected = nodes.pass();
  nodes.of_b = [] {
    if (on_a_worker()) throw std::runtime_error("of the test");
  };
  BOOST_TEST(becomes_true([&] {
    try {
      nodes.pass();
      return false;
    } catch (const error& problem) {
      BOOST_TEST(says("backward on node 'b' failed in ExpBackward0", "of the test")(problem), problem.what());
      return true;
    }
  }));
  nodes.of_b = [] {};
  BOOST_TEST(at::equal(nodes.pass()[0], expected[0]));
  BOOST_TEST(becomes_idle(nodes.a));
  BOOST_TEST(becomes_idle(nodes.b));
}

// PX-1: the worker would wait for itself.
BOOST_AUTO_TEST_CASE(a_worker_can_not_stop_its_node) {
  nodes_with_workers nodes(1);
  std::mutex mutex;
  std::string text;
  nodes.of_b = [&] {
    if (!on_a_worker()) return;
    try {
      nodes.b.stop();
    } catch (const error& refused) {
      const std::lock_guard lock(mutex);
      text = refused.what();
    }
  };
  BOOST_TEST(becomes_true([&] {
    nodes.pass();
    const std::lock_guard lock(mutex);
    return !text.empty();
  }));
  BOOST_TEST(text.find("would wait for itself") != std::string::npos, text);
}

// The worker slot of a call is free while the call waits, so the hooks of a pass that the call starts may call the node again.
BOOST_AUTO_TEST_CASE(hooks_in_a_pass_of_a_call_may_wait_for_calls) {
  nodes_with_workers nodes(2);
  nodes.b.functions().add("nothing", [](call_arguments&) { return call_reply{}; });
  std::atomic<int> by_workers{0};
  nodes.b.functions().add("pass", [&](call_arguments& arguments) {
    context within(arguments.here);
    const auto x = at::linspace(0, 1, 100'000).requires_grad_();
    within
      .backward({branches(x,
                          [&] {
                            by_workers += on_a_worker() ? 1 : 0;
                            nodes.b.self().call("nothing").get();
                          })
                   .sum()})
      .get();
    return call_reply{{within.gradient(x)}};
  });
  for (int round = 0; round < 3; ++round) BOOST_TEST(nodes.a.peer("b").call("pass").get().tensors.at(0).defined());
  BOOST_TEST(by_workers == 0);
}

// Without a measured grain every function would be handed over.
BOOST_AUTO_TEST_CASE(know_how_long_a_hand_over_takes) {
  nodes_with_workers nodes(1);
  BOOST_REQUIRE(services_of(nodes.a).pass_workers.load() != nullptr);
  BOOST_TEST(services_of(nodes.a).pass_workers.load()->grain() > 0);
}

BOOST_AUTO_TEST_CASE(of_more_than_1024_threads_are_refused) {
  auto options = settings_with_workers("a", 1025);
  BOOST_CHECK_EXCEPTION(node{options}, error, says("settings: pass_workers is 1025, expected 0 to 1024"));
}

BOOST_AUTO_TEST_CASE(that_get_no_threads_are_an_error_that_names_the_node) {
  deterministic_system all;
  settings options;
  options.name = "a";
  options.pass_workers = 2;
  {
    const no_more_threads none;
    BOOST_CHECK_EXCEPTION(node(options, all.system), error,
                          says("node 'a', pass_workers: a team of 2 workers got threads for 0", "ask for fewer"));
  }
  node here(options, all.system);
  here.stop();
  all.run();  // what ends the actors
}

BOOST_AUTO_TEST_SUITE_END()
