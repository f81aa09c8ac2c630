// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/company.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <string>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <troupe/actors/network/system_config.hpp>
#include <troupe/troupe.hpp>

BOOST_AUTO_TEST_SUITE(end_of_a_node)

namespace {

troupe::settings named(const std::string& name) {
  troupe::settings options;
  options.name = name;
  return options;
}

void run(caf::actor_system& system) { dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler()).run(); }

}  // namespace

BOOST_AUTO_TEST_CASE(leaves_none_of_its_actors_on_a_system_of_the_callers) {  // CM-1
  troupe::network::system_config config{troupe::network::system_config::for_tests{}};
  caf::actor_system system{config};
  const auto before = system.registry().running();
  troupe::node here(named("here"), system);
  here.functions().add("nothing", [](troupe::call_arguments&) { return troupe::call_reply{}; });
  here.publish("user's", caf::actor_cast<caf::strong_actor_ptr>(
                           system.spawn([](caf::event_based_actor*) { return caf::behavior{[](int) {}}; })));
  const troupe::context open(here);
  auto called = here.self().call("nothing");
  run(system);
  BOOST_TEST(called.ready());
  BOOST_TEST(system.registry().running() > before);
  here.stop();
  run(system);
  BOOST_TEST(system.registry().running() == before);
}

BOOST_AUTO_TEST_CASE(waits_for_the_functions_that_run) {  // CM-1
  constexpr std::chrono::milliseconds time_of_the_call{200};
  std::promise<void> begun;
  std::promise<void> ended_early;
  std::atomic<bool> ended{false};
  troupe::node here(named("here"));
  here.functions().add("long", [&](troupe::call_arguments&) {
    begun.set_value();
    ended_early.get_future().wait_for(time_of_the_call);
    ended = true;
    return troupe::call_reply{};
  });
  auto called = here.self().call("long");
  begun.get_future().wait();
  here.stop();
  BOOST_TEST(ended);
  ended_early.set_value();
  BOOST_CHECK_THROW(called.get(), troupe::error);
}

BOOST_AUTO_TEST_SUITE_END()
