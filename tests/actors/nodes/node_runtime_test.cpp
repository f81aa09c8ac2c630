// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/node_runtime.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/troupe.hpp>

#include "actors/deterministic_system.hpp"
#include "actors/loopback_nodes.hpp"
#include "actors/temporary_folder.hpp"
#include "support/contains.hpp"

using namespace std::chrono_literals;
using troupe::test::contains;

BOOST_AUTO_TEST_SUITE(end_of_a_node)

namespace {

troupe::settings named(const std::string& name) {
  troupe::settings options;
  options.name = name;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_CASE(says_what_a_system_of_the_callers_lacks) {
  caf::actor_system_config config;
  caf::actor_system system{config};
  BOOST_CHECK_EXCEPTION(troupe::node(named("here"), system), troupe::error, [](const troupe::error& why) {
    return why.code() == troupe::errc::misuse && troupe::test::contains(why.what(), "load caf::io::middleman");
  });
}

BOOST_AUTO_TEST_CASE(leaves_none_of_its_actors_on_a_system_of_the_callers) {  // RU-1
  troupe::test::deterministic_system all;
  auto& system = all.system;
  const auto before = system.registry().running();
  troupe::node here(named("here"), system);
  here.functions().add("nothing", [](troupe::call_arguments&) { return troupe::call_reply{}; });
  here.publish("user's", caf::actor_cast<caf::strong_actor_ptr>(
                           system.spawn([](caf::event_based_actor*) { return caf::behavior{[](int) {}}; })));
  const troupe::context open(here);
  auto called = here.self().call("nothing");
  all.run();
  BOOST_TEST(called.ready());
  BOOST_TEST(system.registry().running() > before);
  here.stop();
  all.run();
  BOOST_TEST(system.registry().running() == before);
}

BOOST_AUTO_TEST_CASE(waits_for_the_functions_that_run) {  // RU-1
  std::promise<void> begun;
  std::promise<void> failed;
  std::atomic<bool> ended{false};
  troupe::node here(named("here"));
  here.functions().add("long", [&](troupe::call_arguments&) {
    begun.set_value();
    failed.get_future().wait_for(60s);
    std::this_thread::yield();
    ended = true;
    return troupe::call_reply{};
  });
  auto called = here.self().call("long");
  called.then([&](const auto&) { failed.set_value(); });  // the end of the node fails the call, and then waits for the function
  begun.get_future().wait();
  here.stop();
  BOOST_TEST(ended);
  BOOST_CHECK_THROW(called.get(), troupe::error);
}

namespace {

/// A node with a function that never ends by itself, `hangs`, which owns the object.
struct node_that_hangs {
  explicit node_that_hangs(std::chrono::milliseconds limit, const std::string& log = {}) {
    auto options = named("here");
    options.log_file = log;
    options.stop_limit = limit;
    here.emplace(options);
    here->functions().add(
      "hangs", [this, end = go_on.get_future().share(),
                owned = std::shared_ptr<void>(nullptr, [this](void*) { freed.set_value(); })](troupe::call_arguments&) {
        begun.set_value();
        end.wait();
        return troupe::call_reply{};
      });
    called = here->self().call("hangs");
    begun.get_future().wait();
  }
  std::promise<void> begun;
  std::promise<void> go_on;
  std::promise<void> freed;
  std::optional<troupe::node> here;
  std::optional<troupe::future<troupe::call_reply>> called;
};

}  // namespace

BOOST_AUTO_TEST_CASE(waits_no_longer_than_its_limit_and_tells_what_still_runs) {
  node_that_hangs all(50ms);
  std::atomic<bool> has_begun_late{false};
  all.here->functions().add("late", [&](troupe::call_arguments&) {
    has_begun_late = true;
    return troupe::call_reply{};
  });
  const auto late = all.here->self().call("late");  // its worker is busy
  BOOST_CHECK_EXCEPTION(all.here->stop(), troupe::error, [](const troupe::error& late) {
    return late.code() == troupe::errc::deadline_passed &&
           contains(late.what(), "node 'here' has not stopped within 0.05 s: still runs the call of 'hangs' (for ");
  });
  all.here->stop();  // has been called before, so it does nothing
  BOOST_CHECK_THROW(all.called->get(), troupe::error);
  BOOST_CHECK_THROW(all.here->status(), troupe::error);
  const auto freed = all.freed.get_future();
  all.here.reset();
  BOOST_TEST((freed.wait_for(0s) == std::future_status::timeout));  // what still runs may use it
  all.go_on.set_value();
  freed.wait();
  BOOST_TEST(!has_begun_late);
}

// CAF leaves something of an actor system with each thread that makes actors, and waits for these threads when the system ends.
BOOST_AUTO_TEST_CASE(does_not_wait_for_threads_that_have_used_it) {
  troupe::node other(named("other"));
  other.functions().add("same", [](troupe::call_arguments& given) { return troupe::call_reply{given.tensors}; });
  auto patient = named("here");
  patient.stop_limit = 1h;
  std::optional<troupe::node> here(patient);
  std::promise<void> may_end;
  const auto end = may_end.get_future().share();
  const auto on_a_thread = [&](const std::function<void()>& use) {
    std::promise<void> used;
    auto result = std::async(std::launch::async, [&used, use, end] {
      use();
      used.set_value();
      end.wait();
    });
    used.get_future().wait();
    return result;
  };
  std::vector<std::future<void>> threads;
  threads.push_back(on_a_thread([&] { here->join("127.0.0.1", other.port()); }));
  threads.push_back(on_a_thread([&] { here->peer("other").status(); }));
  threads.push_back(on_a_thread([&] { here->collect_trace({"other"}); }));
  threads.push_back(on_a_thread([&] { BOOST_CHECK_THROW(here->peer("other").actor("nobody"), troupe::error); }));
  threads.push_back(on_a_thread([&] { BOOST_CHECK_THROW(here->peer("nobody", 1ms), troupe::error); }));
  threads.push_back(on_a_thread([&] { const troupe::worker_team team(*here, 1); }));
  threads.push_back(on_a_thread([&] {
    troupe::context within(*here);
    const auto x = at::ones({2}).requires_grad_();
    within.backward({here->peer("other").call("same", {x}).get().tensor(0).sum()}).get();
    BOOST_TEST(within.gradient(x).defined());
  }));
  const auto ended = std::async(std::launch::async, [&] {
    { const caf::scoped_actor of_the_user{here->system()}; }
    here.reset();
  });
  const bool in_time = ended.wait_for(20s) == std::future_status::ready;
  may_end.set_value();
  BOOST_TEST(in_time);
}

BOOST_AUTO_TEST_CASE(by_the_destructor_logs_what_still_runs) {
  const troupe::test::temporary_folder folder;
  node_that_hangs all(50ms, folder / "log");
  all.here.reset();
  BOOST_TEST(troupe::test::becomes_true([&] {
    return contains(troupe::test::read_text(folder / "log"),
                    "node 'here' has not stopped within 0.05 s: still runs the call of 'hangs' (for ");
  }));
  all.go_on.set_value();
  all.freed.get_future().wait();
}

BOOST_AUTO_TEST_CASE(frees_all_if_the_last_function_ends_within_the_limit) {
  node_that_hangs all(1h);
  const auto freed = all.freed.get_future();
  auto stopped = std::async(std::launch::async, [&] { all.here.reset(); });
  all.go_on.set_value();
  stopped.get();
  BOOST_TEST((freed.wait_for(0s) == std::future_status::ready));
}

BOOST_AUTO_TEST_CASE(frees_a_port_that_the_system_chose, *boost::unit_test::label("own_network")) {
  auto first = std::make_unique<troupe::node>(troupe::test::loopback_settings("first"));
  troupe::node guest(troupe::test::loopback_settings("guest"));
  guest.join("127.0.0.1", first->port());
  auto options = troupe::test::loopback_settings("first");
  options.port = first->port();
  first.reset();  // its connections keep their addresses for a minute
  const troupe::node successor(options);
  BOOST_TEST(successor.port() == options.port);
}

BOOST_AUTO_TEST_SUITE_END()
