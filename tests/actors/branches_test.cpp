// SPDX-License-Identifier: BSD-3-Clause
// Other threads that work for a context: in its program, and in functions that its calls run.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <troupe/actors/support/call_scope.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"

namespace {

using troupe::call_arguments;
using troupe::call_reply;
using troupe::errc;
using troupe::test::becomes_idle;
using troupe::test::loopback_settings;
using troupe::test::says;

constexpr int count_of_branches = 12;

/// Runs the pieces of work one after the other, each on a thread of its own.
void run_in_order(const std::vector<int>& order, const std::function<void(int)>& piece) {
  for (const int each : order) std::thread(piece, each).join();
}

struct nodes_with_threads {
  nodes_with_threads() {
    b.functions().add("scale", [this](call_arguments& arguments) {
      return call_reply{{arguments.tensor(0) * factors[troupe::get<std::int64_t>(arguments.values, "branch")] * weight}};
    });
    b.functions().add("gradient",
                      [this](call_arguments& arguments) { return call_reply{{arguments.gradients->find(weight)}}; });
    b.functions().add("spread", [this](call_arguments& arguments) { return call_reply{{spread(b, c, arguments.tensor(0))}}; });
    c.functions().add("scale", [this](call_arguments& arguments) {
      return call_reply{{arguments.tensor(0) * factors[troupe::get<std::int64_t>(arguments.values, "branch")] * weight_of_c}};
    });
    a.join("127.0.0.1", b.port());
    b.join("127.0.0.1", c.port());
    b.peer("c");
  }

  /// The sum of the branches. Each branch is a call from a thread of its own; the threads run in the order of `order`.
  at::Tensor spread(troupe::node& here, troupe::node& there, const at::Tensor& input) {
    std::vector<at::Tensor> done(count_of_branches);
    std::vector<troupe::context::branch> branches;
    for (int i = 0; i < count_of_branches; ++i) branches.emplace_back(here);
    const auto to = here.peer(there.name());
    run_in_order(order, [&](int i) {
      const troupe::context::scope scope(branches[i]);
      const auto y = to.call("scale", {input * factors[i]}, {{"branch", i}}).get().tensor(0);
      done[i] = y * factors[i].exp();
    });
    return at::stack(done).sum(0);
  }
  /// What `spread` computes, on one thread, with libtorch alone.
  at::Tensor spread_alone(const at::Tensor& input, const at::Tensor& of_callee) {
    std::vector<at::Tensor> done;
    for (const auto& each : factors) done.push_back(input * each * each * of_callee * each.exp());
    return at::stack(done).sum(0);
  }

  std::vector<int> order = [] {
    std::vector<int> result(count_of_branches);
    std::iota(result.begin(), result.end(), 0);
    return result;
  }();
  std::vector<at::Tensor> factors = at::randn({count_of_branches, 5}).unbind();
  at::Tensor weight = at::randn({5}).requires_grad_();
  at::Tensor weight_of_c = at::randn({5}).requires_grad_();
  at::Tensor x = at::randn({5}).requires_grad_();
  troupe::node a{loopback_settings("a")};
  troupe::node b{loopback_settings("b")};
  troupe::node c{loopback_settings("c")};
};

auto has(errc code) {
  return [code](const troupe::error& e) { return e.code() == code; };
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(branches, nodes_with_threads)

// BG-1: the bits are those of libtorch on one thread, whichever thread runs first.
BOOST_AUTO_TEST_CASE(sums_do_not_depend_on_the_order_in_which_threads_open_their_scopes) {
  std::mt19937 random(7);
  const auto alone = torch::autograd::grad({(spread_alone(x, weight).sin().sum())}, {x, weight});
  for (int run = 0; run < 20; ++run) {
    std::shuffle(order.begin(), order.end(), random);
    troupe::context pass(a);
    pass.backward({spread(a, b, x).sin().sum()}).get();
    BOOST_TEST(at::equal(pass.gradient(x), alone[0]));
    BOOST_TEST(at::equal(a.peer("b").call("gradient").get().tensor(0), alone[1]));
  }
}

BOOST_AUTO_TEST_CASE(threads_of_a_function_that_is_called_join_the_context_of_the_call) {  // BG-1, BG-2
  std::mt19937 random(8);
  const auto alone = torch::autograd::grad({(spread_alone(x, weight_of_c).sin().sum())}, {x});
  for (int run = 0; run < 20; ++run) {
    std::shuffle(order.begin(), order.end(), random);
    troupe::context pass(a);
    pass.backward({a.peer("b").call("spread", {x}).get().tensor(0).sin().sum()}).get();
    BOOST_TEST(at::equal(pass.gradient(x), alone[0]));
  }
  BOOST_TEST((becomes_idle(a) && becomes_idle(b) && becomes_idle(c)));
}

BOOST_AUTO_TEST_CASE(a_branch_inside_a_branch_and_on_the_thread_of_the_context_has_a_place_too) {  // BG-1
  const auto alone = torch::autograd::grad({((x * 3).exp() + (x * 5).exp() + (x * 7).exp()).sum()}, {x});
  troupe::context pass(a);
  const auto outer = troupe::context::branch(a);
  const auto last = x * 7;
  at::Tensor first;
  at::Tensor second;
  std::thread([&] {
    const troupe::context::scope scope(outer);
    std::optional<troupe::context::branch> inner(a);
    second = x * 5;
    std::thread([&] {
      const troupe::context::scope within(*inner);
      first = x * 3;
    }).join();
    const troupe::context::scope here(troupe::context::branch{a});  // nested scopes on one thread
    BOOST_TEST((troupe::context::current() == pass.id()));
  }).join();
  pass.backward({(first.exp() + second.exp() + last.exp()).sum()}).get();
  BOOST_TEST(at::allclose(pass.gradient(x), alone[0]));
}

// BG-1: what the thread records after a scope has its own place again.
BOOST_AUTO_TEST_CASE(what_the_thread_of_the_context_records_between_scopes_does_not_belong_to_them) {
  const auto run = [&](const std::function<at::Tensor(int)>& branch) {
    at::Tensor sum = at::zeros({5});
    for (int i = 0; i < count_of_branches; ++i) sum = sum + (branch(i) * factors[i].exp() + x * factors[i]).sin();
    return sum.sum();
  };
  std::vector<at::Tensor> made;
  for (const auto& each : factors) made.push_back(x * each * each * weight);
  const auto alone = torch::autograd::grad({run([&](int i) { return made[i]; })}, {x});
  troupe::context pass(a);
  const auto to = a.peer("b");
  std::vector<troupe::context::branch> branches;
  for (int i = 0; i < count_of_branches; ++i) branches.emplace_back(a);
  const auto loss = run([&](int i) {
    const troupe::context::scope scope(branches[i]);
    return to.call("scale", {x * factors[i]}, {{"branch", i}}).get().tensor(0);
  });
  pass.backward({loss}).get();
  BOOST_TEST(at::equal(pass.gradient(x), alone[0]));
}

BOOST_AUTO_TEST_CASE(many_threads_at_once_join_one_context) {  // BG-2
  troupe::context pass(a);
  std::vector<std::future<at::Tensor>> results;
  for (int i = 0; i < count_of_branches; ++i)
    results.push_back(std::async(std::launch::async, [this, i, branch = troupe::context::branch(a)] {
      const troupe::context::scope scope(branch);
      return a.peer("b").call("scale", {x}, {{"branch", i}}).get().tensor(0);
    }));
  std::vector<at::Tensor> done;
  for (auto& each : results) done.push_back(each.get());
  pass.backward({at::stack(done).sum()}).get();
  BOOST_TEST(at::allclose(pass.gradient(x), at::stack(factors).sum(0) * weight.detach()));
  BOOST_TEST(!std::async(std::launch::async, [] { return troupe::context::current(); }).get());
}

BOOST_AUTO_TEST_CASE(another_thread_may_start_the_pass) {  // BG-2
  troupe::context pass(a);
  const auto loss = spread(a, b, x).sum();
  const auto alone = torch::autograd::grad({spread_alone(x, weight).sum()}, {x});
  std::thread([&] { pass.backward({loss}).get(); }).join();
  BOOST_TEST(at::equal(pass.gradient(x), alone[0]));
}

BOOST_AUTO_TEST_CASE(a_branch_is_made_where_a_context_is_open_and_opened_once) {  // BG-3
  BOOST_CHECK_EXCEPTION(troupe::context::branch{a}, troupe::error, says("no context is open on this thread"));
  auto pass = std::make_unique<troupe::context>(a);
  std::thread([&] { BOOST_CHECK_EXCEPTION(troupe::context::branch{a}, troupe::error, has(errc::misuse)); }).join();
  BOOST_CHECK_EXCEPTION(troupe::context::branch{b}, troupe::error, has(errc::misuse));
  const troupe::context::branch branch(a);
  { const troupe::context::scope scope(branch); }
  const auto copy = branch;
  BOOST_CHECK_EXCEPTION(troupe::context::scope{copy}, troupe::error, says("was opened before"));
  BOOST_CHECK_EXCEPTION(
    [&] {
      troupe::node stopped(loopback_settings("stopped"));
      stopped.stop();
      troupe::context::branch{stopped};
    }(),
    troupe::error, has(errc::stopping));
  const troupe::context::branch late(a);
  const auto id = to_string(pass->id());
  pass.reset();  // at once, before the context is released
  BOOST_CHECK_EXCEPTION(troupe::context::scope{late}, troupe::error, says(id, "was released"));
  BOOST_TEST(!troupe::context::current());
}

BOOST_AUTO_TEST_CASE(calls_in_a_scope_that_outlives_its_context_fail) {  // BG-3
  auto pass = std::make_unique<troupe::context>(a);
  std::promise<void> released;
  auto call = std::async(std::launch::async, [this, branch = troupe::context::branch(a), wait = released.get_future().share()] {
    const troupe::context::scope scope(branch);
    wait.wait();
    a.peer("b").call("scale", {x}, {{"branch", 0}}).get();
  });
  pass.reset();
  BOOST_TEST(becomes_idle(a));
  released.set_value();
  BOOST_CHECK_EXCEPTION(call.get(), troupe::error, has(errc::unknown_context));
}

BOOST_AUTO_TEST_CASE(calls_in_a_scope_that_outlives_its_context_on_its_own_thread_fail) {  // BG-3
  auto pass = std::make_unique<troupe::context>(a);
  const troupe::context::scope scope{troupe::context::branch(a)};
  pass.reset();
  BOOST_CHECK_EXCEPTION(a.peer("b").call("scale", {x}, {{"branch", 0}}).get(), troupe::error, has(errc::unknown_context));
}

BOOST_AUTO_TEST_CASE(a_context_that_ends_on_another_thread_leaves_what_is_around_it) {  // HP-1
  using scope = troupe::support::call_scope;
  const auto lose_a_context = [](troupe::node& here) {
    auto inner = std::make_unique<troupe::context>(here);
    std::thread([&] { inner.reset(); }).join();
  };
  b.functions().add("lose", [&](call_arguments& arguments) {
    const auto before = scope::current_bounds();
    lose_a_context(arguments.here);
    const auto after = scope::current_bounds();
    BOOST_TEST(before.until_ns != 0);
    BOOST_TEST((after.until_ns == before.until_ns && after.depth == before.depth && after.for_peer && before.for_peer));
    return call_reply{};
  });
  a.peer("b").call("lose").get();
  troupe::context pass(a);
  auto y = x * 2;
  y.register_hook([&](const at::Tensor& gradient) {
    lose_a_context(a);
    BOOST_TEST((troupe::context::current() == pass.id()));
    return gradient;
  });
  pass.backward({a.peer("b").call("scale", {y}, {{"branch", 0}}).get().tensor(0).sum()}).get();
}

BOOST_AUTO_TEST_CASE(a_scope_that_ends_on_another_thread_leaves_its_own_free) {  // BG-3
  b.functions().add("echo", [](call_arguments& arguments) { return call_reply{{arguments.tensor(0)}}; });
  const auto exact = at::linspace(1, 2, 4096);
  const auto is_free = [&] {
    return !troupe::context::current() && at::equal(a.peer("b").call("echo", {exact}).get().tensor(0), exact);
  };
  {
    troupe::context pass(a, troupe::wire_format::bfloat16);
    BOOST_TEST(!at::equal(a.peer("b").call("echo", {exact}).get().tensor(0), exact));
    std::unique_ptr<troupe::context::scope> scope;
    std::thread([&, branch = troupe::context::branch(a)] {
      scope = std::make_unique<troupe::context::scope>(branch);
      std::thread([&] { scope.reset(); }).join();
      BOOST_TEST(is_free());
    }).join();
    BOOST_TEST((troupe::context::current() == pass.id()));
  }
  auto pass = std::make_unique<troupe::context>(a, troupe::wire_format::bfloat16);
  std::thread([&] { pass.reset(); }).join();
  BOOST_TEST(is_free());
}

BOOST_AUTO_TEST_CASE(a_scope_that_ends_on_another_thread_leaves_no_deadline) {  // BG-3
  troupe::support::call_bounds left;
  b.functions().add("leave", [&](call_arguments&) {
    std::thread([&, branch = troupe::context::branch(b)] {
      auto scope = std::make_unique<troupe::context::scope>(branch);
      std::thread([&] { scope.reset(); }).join();
      left = troupe::support::call_scope::current_bounds();
    }).join();
    return call_reply{};
  });
  const troupe::context pass(a);
  a.peer("b").call("leave").get();
  BOOST_TEST(left.depth == 0u);
  BOOST_TEST(left.until_ns == 0);
  BOOST_TEST(!left.for_peer);
}

BOOST_AUTO_TEST_CASE(scopes_of_a_thread_may_end_in_any_order) {  // BG-3
  using troupe::context;
  const context pass(a);
  const context::branch first(a);
  const context::branch second(a);
  std::thread([&] {
    auto outer = std::make_unique<context::scope>(first);
    auto inner = std::make_unique<context::scope>(second);
    outer.reset();
    BOOST_TEST((context::current() == pass.id()));
    inner.reset();
    BOOST_TEST(!context::current());
  }).join();
  BOOST_TEST((context::current() == pass.id()));
}

// BG-3: the other node takes branch in the context too, but the thread runs no function of it.
BOOST_AUTO_TEST_CASE(a_branch_is_made_by_the_node_for_which_the_thread_works) {
  const troupe::context pass(a);
  a.peer("b").call("scale", {x}, {{"branch", 0}}).get();
  BOOST_CHECK_EXCEPTION(troupe::context::branch{b}, troupe::error, says("open for node 'a'", "got node 'b'"));
  b.functions().add("branch", [&](call_arguments& arguments) {
    BOOST_CHECK_EXCEPTION(troupe::context::branch{a}, troupe::error, says("open for node 'b'", "got node 'a'"));
    std::thread([branch = troupe::context::branch(b), &here = b] {
      const troupe::context::scope scope(branch);
      troupe::context::branch{here};
    }).join();
    arguments.here.peer("c").call("scale", {x}, {{"branch", 0}}).then([&here = b](const auto&) {
      troupe::context::branch{here};
    });
    return call_reply{};
  });
  a.peer("b").call("branch").get();
}

BOOST_AUTO_TEST_SUITE_END()
