// SPDX-License-Identifier: BSD-3-Clause
// A call or a burst that is likely to be short runs on the network thread that read its message. A call that was short until
// now may take long the next time.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/actors/node_access.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "support/thread_name.hpp"

using namespace std::chrono_literals;

namespace {

using troupe::call_arguments;
using troupe::call_reply;
using troupe::test::becomes_idle;
using troupe::test::loopback_settings;

troupe::settings with_workers(std::string name) {
  auto result = loopback_settings(std::move(name));
  result.workers = 4;
  return result;
}

const std::string of_the_network = "troupe.network";

struct two_nodes {
  two_nodes() { a.join("127.0.0.1", b.port()); }

  troupe::node a{loopback_settings("a")};
  troupe::node b{with_workers("b")};
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(short_work, two_nodes)

BOOST_AUTO_TEST_CASE(a_call_that_was_short_before_runs_on_a_thread_of_the_network, *boost::unit_test::label("own_network")) {
  b.functions().add("thread", [](call_arguments&) { return call_reply{{}, {{"name", troupe::test::thread_name()}}}; });
  const auto name = [&] { return troupe::get<std::string>(a.peer("b").call("thread").get().values, "name"); };
  BOOST_TEST(name() != of_the_network);
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (name() != of_the_network) BOOST_REQUIRE((std::chrono::steady_clock::now() < until));
}

// The graph of a context holds a tensor. The test notes which thread frees the tensor after the release of the context.
BOOST_AUTO_TEST_CASE(what_contexts_leave_is_freed_on_a_thread_of_the_network_once_that_was_short,
                     *boost::unit_test::label("own_network")) {
  b.functions().add("one_more", [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0) + 1}}; });
  const auto x = torch::ones({1}, torch::requires_grad());
  float factor = 2;
  const auto until = std::chrono::steady_clock::now() + 20s;
  for (std::string where; where != of_the_network;) {
    BOOST_REQUIRE((std::chrono::steady_clock::now() < until));
    std::promise<std::string> freed;
    {
      troupe::context held{a};
      auto saved = torch::from_blob(&factor, {1}, [&](void*) { freed.set_value(troupe::test::thread_name()); });
      a.peer("b").call("one_more", {x * saved}).get();
    }
    auto result = freed.get_future();
    BOOST_REQUIRE((result.wait_for(20s) == std::future_status::ready));
    where = result.get();
  }
}

// A call that was always short takes long. The second network thread has to take over, and the calls behind go to workers.
BOOST_AUTO_TEST_CASE(a_call_that_is_short_no_more_delays_no_other) {
  std::mutex mutex;
  std::condition_variable changed;
  bool blocks = false;
  int inside = 0;
  b.functions().add("fickle", [&](call_arguments&) {
    std::unique_lock lock(mutex);
    if (blocks) {
      ++inside;
      changed.notify_all();
      changed.wait_for(lock, 20s, [&] { return inside == 3; });  // until all three calls run
    }
    return call_reply{};
  });
  for (int i = 0; i < 200; ++i) a.peer("b").call("fickle").get();
  {
    const std::lock_guard lock(mutex);
    blocks = true;
  }
  std::vector<troupe::future<call_reply>> calls;
  for (int i = 0; i < 3; ++i) calls.push_back(a.peer("b").call("fickle"));
  for (const auto& each : calls) each.get();
  BOOST_TEST(inside == 3);
}

// The short call makes a call itself. The answer comes as a message to the node whose network thread the short call occupies.
BOOST_AUTO_TEST_CASE(a_short_call_may_wait_for_a_call_of_its_own_to_the_node_that_waits_for_it) {
  a.functions().add("back", [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0) + 1}}; });
  b.functions().add("there_and_back", [](call_arguments& arguments) {
    return call_reply{arguments.here.peer("a").call("back", {arguments.tensors.at(0)}).get().tensors};
  });
  for (int i = 0; i < 200; ++i)
    BOOST_TEST(a.peer("b").call("there_and_back", {torch::ones({1})}).get().tensors.at(0).item<float>() == 2);
}

// A hook of a burst that runs on a network thread may wait for a call, too.
BOOST_AUTO_TEST_CASE(a_hook_of_a_short_burst_may_wait_for_a_call) {
  b.functions().add("one", [](call_arguments&) { return call_reply{{torch::ones({1})}}; });
  b.functions().add("hooked", [](call_arguments& arguments) {
    auto y = arguments.tensors.at(0) * 2;
    y.register_hook(
      [here = arguments.here.self()](const at::Tensor& gradient) { return gradient + here.call("one").get().tensors.at(0); });
    return call_reply{{y}};
  });
  const auto x = torch::ones({1}, torch::requires_grad());
  for (int i = 0; i < 50; ++i) {
    troupe::context pass{a};
    pass.backward({a.peer("b").call("hooked", {x}).get().tensors.at(0)}).get();
    BOOST_TEST(pass.gradient(x).item<float>() == 4);
  }
  BOOST_TEST(becomes_idle(a));
  BOOST_TEST(becomes_idle(b));
}

// Before a node stops, the node waits for a call that runs on a network thread.
BOOST_AUTO_TEST_CASE(a_node_stops_while_short_calls_run) {
  for (int round = 0; round < 20; ++round) {
    auto callee = std::make_unique<troupe::node>(loopback_settings("c"));
    callee->functions().add("touch", [](call_arguments& arguments) {
      return call_reply{{}, {{"name", arguments.here.name()}}};
    });
    a.join("127.0.0.1", callee->port());
    const auto to = a.peer("c");
    for (int i = 0; i < 20; ++i) to.call("touch").get();
    std::vector<troupe::future<call_reply>> calls;
    for (int i = 0; i < 50; ++i) calls.push_back(to.call("touch"));
    callee.reset();
    for (const auto& each : calls) try {
        BOOST_TEST(troupe::get<std::string>(each.get().values, "name") == "c");
      } catch (const troupe::error& lost) {
        BOOST_TEST((lost.code() == troupe::errc::peer_down || lost.code() == troupe::errc::stopping));
      }
  }
}

BOOST_AUTO_TEST_CASE(what_is_discarded_is_freed_on_another_thread) {  // GB-1
  std::promise<std::thread::id> freed;
  troupe::services_of(a).garbage.add({nullptr, [&](void*) { freed.set_value(std::this_thread::get_id()); }});
  auto where = freed.get_future();
  BOOST_REQUIRE((where.wait_for(20s) == std::future_status::ready));
  BOOST_TEST((where.get() != std::this_thread::get_id()));
}

BOOST_AUTO_TEST_SUITE_END()
