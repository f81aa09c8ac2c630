// SPDX-License-Identifier: BSD-3-Clause
// The threads that calls start and end, calls that get no thread, and what calls to a dead node leave behind.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/node_access.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "support/no_more_threads.hpp"
#include "support/thread_count.hpp"

using namespace std::chrono_literals;

namespace {

using troupe::test::becomes_idle;
using troupe::test::becomes_true;
using troupe::test::loopback_settings;
using troupe::test::no_more_threads;
using troupe::test::says;
using troupe::test::threads_of;

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

/// The number of answers that an actor waits for. CAF keeps a handler for each of them.
struct answers_awaited : caf::scheduled_actor {
  static std::size_t of(const troupe::contracts::gateway_actor& who) {
    auto* actor = static_cast<caf::scheduled_actor*>(caf::actor_cast<caf::abstract_actor*>(who));
    return (actor->*&answers_awaited::multiplexed_responses_).size();
  }
};

/// The number of threads of this process that run calls or wait for one.
std::size_t call_threads() {
  std::size_t result = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(each.path() / "comm") >> name;
    result += name == "troupe.call" ? 1 : 0;
  }
  return result;
}

/// A module that starts last in its actor system. From then on the process gets no more threads.
class last_threads final : public caf::actor_system::module {
 public:
  static inline std::optional<no_more_threads> taken;

  static module* make(caf::actor_system&, caf::detail::type_list<>) { return new last_threads; }
  void start() override { taken.emplace(); }
  void stop() override { taken.reset(); }
  void init(caf::actor_system_config&) override {}
  id_t id() const override { return opencl_manager; }  // CAF starts the module with this id after the middleman
  void* subtype_ptr() override { return this; }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(threads_of_calls, nodes_that_nest)

BOOST_AUTO_TEST_CASE(threads_of_calls_that_were_nested_deeply_are_let_go) {
  down(2).get();
  constexpr std::size_t kept = 2 * 16;  // 16 idle threads on each of two nodes
  const auto before = threads_of();
  down(300).get();
  BOOST_TEST(becomes_true([&] { return threads_of() <= before + kept; }),
             before << " threads before, " << threads_of() << " after");
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
    BOOST_TEST(a.peer("b").call("echo", {x}).get().tensors.size() == 1u);  // an idle thread runs the call
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

BOOST_AUTO_TEST_CASE(a_node_that_is_refused_its_threads_says_so_and_the_process_goes_on) {
  auto options = loopback_settings("late");
  options.configure = [](caf::actor_system_config& config) { config.load<last_threads>(); };
  BOOST_CHECK_EXCEPTION(troupe::node{options}, troupe::error,
                        says("node 'late' gets no thread to start with (", "raise the limit on the process's threads"));
  BOOST_TEST(troupe::node(loopback_settings("late")).name() == "late");
}

BOOST_AUTO_TEST_CASE(a_node_whose_actor_system_would_get_no_thread_is_not_begun) {
  {
    const no_more_threads none;
    BOOST_CHECK_EXCEPTION(troupe::node(loopback_settings("late")), troupe::error,
                          says("node 'late' gets no thread to start with (", "raise the limit on the process's threads"));
  }
  BOOST_TEST(troupe::node(loopback_settings("late")).name() == "late");
}

BOOST_AUTO_TEST_CASE(a_join_that_gets_no_thread_to_dial_with_says_so_at_once) {
  troupe::node c(loopback_settings("c"));
  const auto begin = std::chrono::steady_clock::now();
  {
    const no_more_threads none;
    BOOST_CHECK_EXCEPTION(c.join("127.0.0.1", b.port()), troupe::error, says("the system gives no thread to dial with"));
  }
  BOOST_TEST((std::chrono::steady_clock::now() - begin < 4s));  // far less than the deadline of 20 s
  c.join("127.0.0.1", b.port());
}

// WK-2
BOOST_AUTO_TEST_CASE(threads_of_calls_that_nobody_needs_any_more_end) {
  for (auto* each : {&a, &b}) troupe::services_of(*each).workers.set_idle_time(1ms);
  BOOST_TEST(a.peer("b").call("echo", {x}).get().tensors.size() == 1u);
  BOOST_TEST(becomes_true([&] { return call_threads() == 0; }));
  down(20).get();
  BOOST_TEST(becomes_true([&] { return call_threads() == 0; }));
  BOOST_TEST(becomes_idle(a));
}

// PW-1
BOOST_AUTO_TEST_CASE(calls_that_wait_for_other_calls_have_a_bounded_number_of_threads) {
  constexpr std::size_t bound = 256;
  std::promise<void> let_go;
  a.functions().add("hold", [go = let_go.get_future().share()](troupe::call_arguments&) {
    go.wait();
    return troupe::call_reply{};
  });
  b.functions().add("ask", [](troupe::call_arguments& arguments) { return arguments.here.peer("a").call("hold").get(); });
  std::vector<troupe::future<troupe::call_reply>> asked;
  for (std::size_t i = 0; i < bound + 50; ++i) asked.push_back(a.peer("b").call("ask"));
  BOOST_TEST(becomes_true([&] { return a.status().calls_queued == bound - 1; }), a.status().calls_queued << " calls wait");
  BOOST_TEST(b.status().calls_queued == 50u);
  BOOST_TEST(call_threads() <= bound + 1);
  let_go.set_value();
  for (auto& each : asked) each.get();
  BOOST_TEST(becomes_idle(b));
}

// WK-1
BOOST_AUTO_TEST_CASE(a_node_that_has_stopped_makes_no_worker) {
  b.stop();
  BOOST_CHECK_EXCEPTION(troupe::services_of(b).workers.spawn(), troupe::error, says("node 'b' is stopping"));
}

BOOST_AUTO_TEST_CASE(a_node_that_got_no_thread_to_read_memory_with_goes_on_and_stops) {
  const auto offer = [] { return std::make_shared<troupe::contracts::incoming_offer>(); };
  {
    const no_more_threads none;
    BOOST_CHECK_THROW(troupe::services_of(b).memory_readers.read(offer()), std::system_error);
  }
  BOOST_TEST(a.peer("b").call("echo", {x}).get().tensors.size() == 1u);
  BOOST_TEST(troupe::services_of(b).memory_readers.read(offer()));
  b.stop();
}

// GW-9
BOOST_AUTO_TEST_CASE(a_call_that_its_dead_node_does_not_answer_keeps_no_context) {
  std::promise<void> begun;
  std::promise<void> let_go;
  b.functions().add("wait", [&](troupe::call_arguments&) {
    begun.set_value();
    let_go.get_future().wait();
    return troupe::call_reply{};
  });
  std::weak_ptr<troupe::passes::context_record> record;
  {
    troupe::context pass(a);
    record = troupe::services_of(a).contexts.find(pass.id()).record;
    auto reply = a.peer("b").call("wait", {x});
    begun.get_future().wait();
    caf::anon_send(troupe::services_of(a).actors.gateway,
                   troupe::contracts::peer_down{{"b", b.id(), "127.0.0.1", b.port()}, "the test says so"});
    BOOST_CHECK_EXCEPTION(reply.get(), troupe::error, says("it went down"));
  }
  BOOST_TEST(becomes_true([&] { return a.status().contexts == 0 && record.expired(); }));
  let_go.set_value();
  BOOST_TEST(becomes_true([&] { return b.status().calls_running == 0; }));
}

// GW-9
BOOST_AUTO_TEST_CASE(a_call_whose_context_is_released_before_its_answer_keeps_nothing) {
  std::promise<void> begun;
  std::promise<void> let_go;
  b.functions().add("wait", [&](troupe::call_arguments&) {
    begun.set_value();
    let_go.get_future().wait();
    return troupe::call_reply{};
  });
  std::weak_ptr<troupe::passes::context_record> record;
  {
    troupe::context pass(a);
    record = troupe::services_of(a).contexts.find(pass.id()).record;
    a.peer("b").call("wait", {x});
    begun.get_future().wait();
  }
  BOOST_TEST(becomes_true([&] { return a.status().contexts == 0 && record.expired(); }));
  let_go.set_value();
  BOOST_TEST(becomes_idle(b));
}

// GW-9: pieces of large tensors are requests too.
BOOST_AUTO_TEST_CASE(nothing_that_was_sent_to_a_node_that_died_keeps_a_handler) {
  auto c = std::make_unique<troupe::node>(loopback_settings("c"));
  a.join("127.0.0.1", c->port());
  std::promise<void> begun;
  std::promise<void> let_go;
  c->functions().add("wait", [&](troupe::call_arguments&) {
    begun.set_value();
    let_go.get_future().wait();
    return troupe::call_reply{};
  });
  auto waits = a.peer("c").call("wait");
  begun.get_future().wait();
  std::vector<troupe::future<troupe::call_reply>> large;
  for (int i = 0; i < 8; ++i) large.push_back(a.peer("c").call("wait", {torch::ones({1 << 20})}));
  caf::anon_send(troupe::services_of(a).actors.gateway,
                 troupe::contracts::peer_down{{"c", c->id(), "127.0.0.1", c->port()}, "the test says so"});
  for (auto& each : large) BOOST_CHECK_THROW(each.get(), troupe::error);
  BOOST_CHECK_THROW(waits.get(), troupe::error);
  BOOST_TEST(becomes_true([&] {
    a.status();
    return answers_awaited::of(troupe::services_of(a).actors.gateway) == 0;
  }));
  let_go.set_value();
  c = nullptr;
}

BOOST_AUTO_TEST_SUITE_END()
