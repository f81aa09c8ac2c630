// SPDX-License-Identifier: BSD-3-Clause
// The threads that calls take, give back and can't have.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <troupe/actors/company.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "support/no_more_threads.hpp"

using namespace std::chrono_literals;

namespace {

using troupe::test::becomes_idle;
using troupe::test::loopback_settings;
using troupe::test::no_more_threads;
using troupe::test::says;

std::size_t threads_of_process() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

template <class Condition>
bool becomes_true(Condition condition, std::chrono::milliseconds patience = 10s) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until)
    if (condition()) return true;
  return false;
}

struct nodes_that_nest {
  nodes_that_nest() {
    for (auto* each : {&a, &b}) {
      each->functions().add("down", [](troupe::call_arguments& arguments) {
        const auto left = troupe::get<std::int64_t>(arguments.values, "left");
        if (left == 0) return troupe::call_reply{};
        auto next = arguments.here.peer(arguments.here.name() == "a" ? "b" : "a");
        return next.call("down", {}, {{"left", left - 1}}).get();
      });
      each->functions().add("echo", [](troupe::call_arguments& arguments) { return troupe::call_reply{arguments.tensors}; });
    }
    a.join("127.0.0.1", b.port());
  }

  troupe::future<troupe::call_reply> down(std::int64_t deep) { return a.peer("b").call("down", {}, {{"left", deep}}); }

  troupe::node a{loopback_settings("a")};
  troupe::node b{loopback_settings("b")};
  at::Tensor x = torch::ones({2}, torch::requires_grad());
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(threads_of_calls, nodes_that_nest)

BOOST_AUTO_TEST_CASE(threads_of_calls_that_were_nested_deeply_are_let_go) {
  down(2).get();
  constexpr std::size_t kept = 2 * 16;  // by two nodes
  const auto before = threads_of_process();
  down(300).get();
  BOOST_TEST(becomes_true([&] { return threads_of_process() <= before + kept; }),
             before << " threads before, " << threads_of_process() << " after");
  down(100).get();
  BOOST_TEST(becomes_idle(a));
  BOOST_TEST(becomes_idle(b));
}

BOOST_AUTO_TEST_CASE(a_call_that_gets_no_thread_fails_and_the_node_goes_on) {
  {
    const no_more_threads none;
    for (int i = 0; i < 3; ++i)
      BOOST_CHECK_EXCEPTION(
        a.peer("b").call("echo", {x}).get(), troupe::error,
        says("call of 'echo' on node 'b' failed: node 'b' gets no thread for it", "temporarily unavailable"));
    BOOST_TEST(a.peer("b").status().calls_queued == 0u);
  }
  BOOST_TEST(a.peer("b").call("echo", {x}).get().tensors.size() == 1u);
  {
    const no_more_threads none;
    BOOST_TEST(a.peer("b").call("echo", {x}).get().tensors.size() == 1u);  // with the thread that is there
    BOOST_CHECK_EXCEPTION(down(50).get(), troupe::error, says("gets no thread for it", "nest fewer calls"));
    troupe::context pass(a);
    const auto y = a.peer("b").call("echo", {x}).get().tensors.at(0);
    pass.backward({y.sum()}).get();
    BOOST_TEST(at::equal(pass.gradient(x), torch::ones({2})));
  }
  down(50).get();
  BOOST_TEST(becomes_idle(a));
  BOOST_TEST(becomes_idle(b));
}

BOOST_AUTO_TEST_CASE(a_node_that_got_no_thread_to_read_memory_with_goes_on_and_stops) {
  {
    const no_more_threads none;
    BOOST_CHECK_THROW(b.actors().memory_reader(), std::system_error);
  }
  BOOST_TEST(a.peer("b").call("echo", {x}).get().tensors.size() == 1u);
  BOOST_TEST(static_cast<bool>(b.actors().memory_reader()));
  b.stop();
}

BOOST_AUTO_TEST_SUITE_END()
