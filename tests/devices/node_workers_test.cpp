// SPDX-License-Identifier: BSD-3-Clause
// Passes over nodes that have workers for their accelerators.
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <troupe/troupe.hpp>

#include "engine/notifying_hook.hpp"
#include "support/contains.hpp"
#include "support/simulated_fixture.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

settings with_workers(std::string name, std::chrono::milliseconds stop_limit = 10s) {
  settings result;
  result.stop_limit = stop_limit;
  result.name = std::move(name);
  result.deadline = 10s;
  result.pass_workers = 1;
  return result;
}

/// Sets the promise when it is destroyed. A node's functions are destroyed when the last thread of the node has ended.
std::shared_ptr<void> owner_that_tells(std::promise<void>& freed) {
  return {nullptr, [&](void*) { freed.set_value(); }};
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(workers_of_nodes, simulated::fixture)

// The burst of one pass waits for a device. Bursts of other passes are on their way to the same node.
BOOST_AUTO_TEST_CASE(a_pass_does_not_wait_behind_one_that_waits_for_a_device) {  // CN-1
  std::promise<void> begins;
  std::promise<void> may_end;
  const auto end = may_end.get_future().share();
  node a(with_workers("a"));
  node b(with_workers("b"));
  b.functions().add("late", [&](call_arguments& arguments) {
    const auto y = arguments.tensors.at(0).to(first) * 2;
    watch(y, [&] {
      begins.set_value();
      end.wait_for(60s);
    });
    return call_reply{{y.cpu()}};
  });
  b.functions().add("double", [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0) * 2}}; });
  a.join("127.0.0.1", b.port());
  const auto x = at::ones({2}).requires_grad_();
  context late(a);
  const auto late_sum = a.peer("b").call("late", {x}).get().tensor(0).sum();
  const auto late_pass = late.backward({late_sum}, {.deadline = 60s});
  begins.get_future().wait();
  auto others = std::async(std::launch::async, [&] {  // a thread has one context at a time
    std::vector<at::Tensor> gradients;
    for (int i = 0; i < 3; ++i) {
      context pass(a);
      pass.backward({a.peer("b").call("double", {x}).get().tensor(0).sum()}).get();
      gradients.push_back(pass.gradient(x));
    }
    return gradients;
  });
  std::vector<at::Tensor> gradients;
  BOOST_CHECK_NO_THROW(gradients = others.get());
  BOOST_TEST(gradients.size() == 3u);
  for (const auto& each : gradients) BOOST_TEST(at::equal(each, at::full({2}, 2.0)));
  BOOST_TEST(!late_pass.ready());
  may_end.set_value();
  late_pass.get();
  BOOST_TEST(at::equal(late.gradient(x), at::full({2}, 2.0)));
}

// The node's owner has to get on with the end of the program, whatever a driver or a function does.
BOOST_AUTO_TEST_CASE(a_driver_that_never_answers_does_not_hold_up_the_end_of_a_node) {  // DP-3
  std::promise<void> freed;
  std::optional<simulated::stuck_driver> stuck;
  std::optional<node> a(with_workers("a", 50ms));
  node b(with_workers("b"));
  a->functions().add("owner", [owned = owner_that_tells(freed)](call_arguments&) { return call_reply{}; });
  b.functions().add("same", [](call_arguments& arguments) { return call_reply{{arguments.tensors}}; });
  a->join("127.0.0.1", b.port());
  stuck.emplace();
  const auto called = a->peer("b").call("same", {at::ones({2}, at::device(first))});
  simulated::stuck_driver::wait_for_question();
  BOOST_CHECK_EXCEPTION(a->stop(), error, [](const error& late) { return late.code() == errc::deadline_passed; });
  a.reset();
  stuck.reset();
  freed.get_future().wait();
}

BOOST_AUTO_TEST_CASE(a_function_of_a_pass_that_never_ends_does_not_hold_up_the_end_of_a_node) {
  std::promise<void> freed;
  std::promise<void> begins;
  std::promise<void> may_end;
  node a(with_workers("a"));
  std::optional<node> b(with_workers("b", 50ms));
  b->functions().add(
    "late", [this, &begins, end = may_end.get_future().share(), owned = owner_that_tells(freed)](call_arguments& given) {
      const auto y = given.tensors.at(0).to(first) * 2;
      watch(y, [&begins, end] {
        begins.set_value();
        end.wait();
      });
      return call_reply{{y.cpu()}};
    });
  a.join("127.0.0.1", b->port());
  context within(a);
  const auto x = at::ones({2}).requires_grad_();
  const auto pass = within.backward({a.peer("b").call("late", {x}).get().tensor(0).sum()});
  begins.get_future().wait();
  BOOST_CHECK_EXCEPTION(b->stop(), error, [](const error& late) {
    return contains(late.what(), "node 'b' has not stopped within 0.05 s: still runs a backward pass (for ");
  });
  b.reset();
  BOOST_CHECK_THROW(pass.get(), error);
  may_end.set_value();
  freed.get_future().wait();
}

BOOST_AUTO_TEST_SUITE_END()
