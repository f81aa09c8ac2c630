// SPDX-License-Identifier: BSD-3-Clause
// Contexts of many threads and nodes, the end of contexts, the roots that a pass may start from, and calls at unusual places.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <troupe/actors/node_access.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"

using namespace std::chrono_literals;

namespace {

using troupe::test::becomes_idle;
using troupe::test::loopback_settings;
using troupe::test::says;

struct nodes_with_contexts {
  nodes_with_contexts() {
    for (auto* each : {&a, &b}) add_functions(*each);
    a.join("127.0.0.1", b.port());
  }

  static void add_functions(troupe::node& here) {
    here.functions().add("twice",
                         [](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.tensors.at(0) * 2}}; });
  }

  bool nothing_is_left() { return becomes_idle(a) && becomes_idle(b); }

  troupe::node a{loopback_settings("a")};
  troupe::node b{loopback_settings("b")};
  at::Tensor x = torch::ones({2}, torch::requires_grad());
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(contexts, nodes_with_contexts)

BOOST_AUTO_TEST_CASE(contexts_of_many_threads_and_nodes_at_once_have_ids_and_gradients_of_their_own) {
  constexpr int threads_a_node = 3;
  constexpr int contexts_a_thread = 10;
  std::mutex mutex;
  std::set<troupe::context_id> ids;
  int right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2 * threads_a_node; ++i)
    threads.emplace_back([&, i] {
      auto& here = i % 2 == 0 ? a : b;
      auto there = here.peer(i % 2 == 0 ? "b" : "a");
      for (int n = 1; n <= contexts_a_thread; ++n) {
        troupe::context pass(here);
        auto y = there.call("twice", {x * n}).get().tensors.at(0);
        pass.backward({(y * i).sum()}).get();
        const bool same = at::equal(pass.gradient(x), torch::full({2}, 2.0 * n * i));
        std::lock_guard lock(mutex);
        ids.insert(pass.id());
        right += same ? 1 : 0;
      }
    });
  for (auto& each : threads) each.join();
  BOOST_TEST(ids.size() == 2u * threads_a_node * contexts_a_thread);
  BOOST_TEST(right == 2 * threads_a_node * contexts_a_thread);
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_CASE(a_node_that_was_restarted_gives_ids_that_no_context_had) {
  auto d = std::make_unique<troupe::node>(loopback_settings("d"));
  d->join("127.0.0.1", b.port());
  troupe::context_id before;
  {
    troupe::context pass(*d);
    d->peer("b").call("twice", {x}).get();
    before = pass.id();
  }
  d = nullptr;
  d = std::make_unique<troupe::node>(loopback_settings("d"));
  d->join("127.0.0.1", b.port());
  {
    troupe::context pass(*d);
    auto y = d->peer("b").call("twice", {x}).get().tensors.at(0);
    pass.backward({y.sum()}).get();
    BOOST_TEST(pass.id().number == before.number);
    BOOST_TEST((pass.id() != before));
    BOOST_TEST(at::equal(pass.gradient(x), torch::full({2}, 2.0)));
  }
  BOOST_TEST(becomes_idle(*d));
  BOOST_TEST(nothing_is_left());
}

// OC-2
BOOST_AUTO_TEST_CASE(a_node_that_has_stopped_opens_no_context) {
  troupe::node late(loopback_settings("late"));
  late.stop();
  auto& contexts = troupe::services_of(late).contexts;
  BOOST_CHECK_EXCEPTION(contexts.open(), troupe::error, says("node 'late' has stopped"));
  const troupe::context_id id{troupe::node_id{7}, 1};
  BOOST_TEST(!contexts.know(contexts.make(id)));
  BOOST_TEST(contexts.all().empty());
}

BOOST_AUTO_TEST_CASE(a_scope_that_an_exception_ends_is_released_everywhere) {
  try {
    troupe::context pass(a);
    a.peer("b").call("twice", {x}).get();
    BOOST_TEST(b.status().contexts == 1u);
    throw std::runtime_error("the user's own");
  } catch (const std::runtime_error&) {
  }
  BOOST_TEST(!troupe::context::current());
  BOOST_TEST(nothing_is_left());
  troupe::context next(a);  // the thread may open another
}

BOOST_AUTO_TEST_CASE(a_scope_that_ended_is_released_on_other_nodes_though_nothing_is_sent_after_it) {
  {
    troupe::context pass(a);
    a.peer("b").call("twice", {x}).get();
  }
  BOOST_TEST(becomes_idle(b));
}

BOOST_AUTO_TEST_CASE(a_call_that_outlives_the_scope_ends_with_an_error_and_leaves_nothing) {
  std::promise<void> begun;
  std::promise<void> let_go;
  b.functions().add("wait", [&](troupe::call_arguments& arguments) {
    begun.set_value();
    let_go.get_future().wait();
    return troupe::call_reply{{arguments.tensors.at(0) * 2}};
  });
  troupe::future<troupe::call_reply> reply;
  {
    troupe::context pass(a);
    reply = a.peer("b").call("wait", {x});
    begun.get_future().wait();
  }
  BOOST_CHECK_EXCEPTION(reply.get(), troupe::error, says("released before it was answered"));
  let_go.set_value();
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_CASE(a_context_is_released_though_a_peer_is_gone) {
  auto d = std::make_unique<troupe::node>(loopback_settings("d"));
  add_functions(*d);
  a.join("127.0.0.1", d->port());
  {
    troupe::context pass(a);
    auto y = a.peer("d").call("twice", {x}).get().tensors.at(0);
    a.peer("b").call("twice", {y}).get();
    d = nullptr;
  }
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_CASE(a_node_that_has_just_joined_may_be_called_for_a_context_of_a_node_that_it_has_not_met) {
  b.functions().add("by_way_of", [](troupe::call_arguments& arguments) {
    auto next = arguments.here.peer(troupe::get<std::string>(arguments.values, "name"));  // waits until the new node joins
    return troupe::call_reply{next.call("twice", arguments.tensors).get().tensors};
  });
  for (const auto* name : {"new1", "new2", "new3"}) {
    {
      troupe::context pass(a);
      auto reply = a.peer("b").call("by_way_of", {x}, {{"name", name}});
      troupe::node newcomer(loopback_settings(name));
      add_functions(newcomer);
      newcomer.join("127.0.0.1", b.port());
      pass.backward({reply.get().tensors.at(0).sum()}).get();
      BOOST_TEST(at::equal(pass.gradient(x), torch::full({2}, 2.0)));
    }
    BOOST_TEST(nothing_is_left());
  }
}

BOOST_AUTO_TEST_CASE(a_node_that_joins_two_others_makes_them_meet) {
  troupe::node c(loopback_settings("c"));
  add_functions(c);
  a.join("127.0.0.1", c.port());
  BOOST_TEST(b.peer("c").call("twice", {x}).get().tensors.at(0).numel() == 2);
  BOOST_TEST(c.peer("b").call("twice", {x}).get().tensors.at(0).numel() == 2);
}

BOOST_AUTO_TEST_CASE(roots_are_checked_before_anything_runs) {
  troupe::context pass(a);
  auto y = a.peer("b").call("twice", {x}).get().tensors.at(0);
  troupe::backward_options with;
  BOOST_CHECK_EXCEPTION(pass.backward({}), troupe::error, says("no roots were given"));
  BOOST_CHECK_EXCEPTION(pass.backward({y.sum(), at::Tensor{}}), troupe::error, says("root 1 is undefined"));
  BOOST_CHECK_EXCEPTION(pass.backward({torch::ones({1})}), troupe::error, says("root 0 of shape [1] does not require grad"));
  BOOST_CHECK_EXCEPTION(pass.backward({y}), troupe::error, says("root 0 has shape [2]"));
  with.gradients = {torch::ones({3})};
  BOOST_CHECK_EXCEPTION(pass.backward({y}, with), troupe::error, says("has shape [3], expected [2]"));
  with.gradients = {torch::ones({2}), torch::ones({2})};
  BOOST_CHECK_EXCEPTION(pass.backward({y}, with), troupe::error, says("2 gradients were given for 1 roots"));
  BOOST_TEST(a.status().passes_failed + a.status().passes_completed + a.status().passes_running == 0u);
}

BOOST_AUTO_TEST_CASE(several_roots_with_gradients_and_roots_that_are_leaves_add_up) {
  troupe::context pass(a);
  auto y = a.peer("b").call("twice", {x}).get().tensors.at(0);
  auto leaf = torch::ones({1}, torch::requires_grad());
  troupe::backward_options with;
  with.gradients = {torch::full({2}, 3.0), at::Tensor{}, torch::full({2}, 5.0)};
  pass.backward({y, leaf, x}, with).get();
  BOOST_TEST(at::equal(pass.gradient(x), torch::full({2}, 11.0)));
  BOOST_TEST(at::equal(pass.gradient(leaf), torch::ones({1})));
}

BOOST_AUTO_TEST_CASE(nested_blocking_calls_64_deep_between_nodes_with_contexts_end_and_carry_gradients_back) {  // CW-2
  const auto down = [](troupe::call_arguments& arguments) {
    const auto left = troupe::get<std::int64_t>(arguments.values, "left");
    auto y = arguments.tensors.at(0) + 1;
    if (left == 0) return troupe::call_reply{{y}};
    auto next = arguments.here.peer(arguments.here.name() == "a" ? "b" : "a");
    return troupe::call_reply{{next.call("down", {y}, {{"left", left - 1}}).get().tensors.at(0)}};
  };
  for (auto* each : {&a, &b}) each->functions().add("down", down);
  {
    troupe::context pass(a);
    auto y = a.peer("b").call("down", {x}, {{"left", 63}}).get().tensors.at(0);
    BOOST_TEST(at::equal(y, torch::full({2}, 65.0)));
    pass.backward({y.sum()}).get();
    BOOST_TEST(at::equal(pass.gradient(x), torch::ones({2})));
  }
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_CASE(a_hook_may_call_other_nodes_and_its_own) {
  b.functions().add("hooked", [](troupe::call_arguments& arguments) {
    auto y = arguments.tensors.at(0) * 1;
    y.register_hook([&here = arguments.here](at::Tensor gradient) {
      auto doubled = here.peer("a").call("twice", {gradient}).get().tensors.at(0);
      return here.self().call("twice", {doubled}).get().tensors.at(0);
    });
    return troupe::call_reply{{y}};
  });
  {
    troupe::context pass(a);
    auto y = a.peer("b").call("hooked", {x}).get().tensors.at(0);
    y.register_hook([this](at::Tensor gradient) { return a.peer("b").call("twice", {gradient}).get().tensors.at(0).detach(); });
    pass.backward({y.sum()}).get();
    BOOST_TEST(at::equal(pass.gradient(x), torch::full({2}, 8.0)));
  }
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_CASE(calls_chained_by_then_join_the_context_and_need_no_thread_that_waits) {
  {
    troupe::context pass(a);
    troupe::future<troupe::call_reply> last;
    auto other = a.peer("b");
    std::function<void(troupe::future<troupe::call_reply>, int)> chain = [&](troupe::future<troupe::call_reply> one, int left) {
      one.then([&, left](troupe::future<troupe::call_reply> reply) {
        auto y = reply.get();
        if (left == 0) return last.set_value(y);
        chain(other.call("twice", y.tensors), left - 1);
      });
    };
    chain(other.call("twice", {x}), 4);
    auto y = last.get().tensors.at(0);
    pass.backward({y.sum()}).get();
    BOOST_TEST(at::equal(pass.gradient(x), torch::full({2}, 32.0)));
  }
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_SUITE_END()
