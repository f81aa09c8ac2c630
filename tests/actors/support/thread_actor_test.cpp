// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/thread_actor.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/send.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/nodes/system_config.hpp>

#include "support/no_more_threads.hpp"

using troupe::nodes::system_config;
using job = std::shared_ptr<std::function<void()>>;

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(job)

BOOST_AUTO_TEST_SUITE(actors_with_a_thread)

namespace {

using job_actor = caf::typed_actor<caf::reacts_to<job>>;

job_actor spawn_job_actor(caf::actor_system& system) {
  return troupe::support::spawn_handlers_with_thread<job_actor>(
    system, "test", [](const job_actor&) { return std::tuple{[](const job& work) { (*work)(); }}; });
}

job make_job(std::function<void()> what) { return std::make_shared<std::function<void()>>(std::move(what)); }

}  // namespace

BOOST_AUTO_TEST_CASE(handle_messages_on_a_thread_of_their_own_until_they_are_told_to_exit) {
  system_config config{system_config::for_tests{}};
  caf::actor_system system{config};
  const auto actor = spawn_job_actor(system);
  std::promise<std::thread::id> where;
  caf::anon_send(actor, make_job([&] { where.set_value(std::this_thread::get_id()); }));
  BOOST_TEST((where.get_future().get() != std::this_thread::get_id()));
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

BOOST_AUTO_TEST_CASE(that_get_no_thread_throw_and_leave_no_actor) {  // TA-1
  auto ended = std::async(std::launch::async, [] {
    system_config config{system_config::for_tests{}};
    caf::actor_system system{config};
    const troupe::test::no_more_threads none;
    BOOST_CHECK_THROW(spawn_job_actor(system), std::system_error);
  });  // if an actor were left, the end of the system would wait for it
  BOOST_TEST_REQUIRE((ended.wait_for(std::chrono::seconds(10)) == std::future_status::ready));
}

BOOST_AUTO_TEST_CASE(are_waited_for_by_the_end_of_their_system) {  // TA-2
  constexpr std::chrono::milliseconds time_of_the_job{200};
  bool ended = false;
  std::promise<void> begun;
  std::promise<void> ended_early;
  {
    system_config config{system_config::for_tests{}};
    caf::actor_system system{config};
    const auto actor = spawn_job_actor(system);
    caf::anon_send(actor, make_job([&] {
                     begun.set_value();
                     ended_early.get_future().wait_for(time_of_the_job);
                     ended = true;
                   }));
    begun.get_future().wait();
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }
  BOOST_TEST(ended);
  ended_early.set_value();
}

BOOST_AUTO_TEST_SUITE_END()
