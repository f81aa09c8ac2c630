// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/garbage.hpp>

#include <boost/test/unit_test.hpp>

#include <caf/after.hpp>

#include "actors/lone_services.hpp"

using namespace troupe;

BOOST_AUTO_TEST_SUITE(garbage_of_a_node)

BOOST_AUTO_TEST_CASE(free_what_is_discarded_after_the_thread_that_discards_went_on) {  // GB-1
  test::lone_services here(true);
  here.services.actors.continuation =
    caf::actor_cast<contracts::cpu_continuation_actor>(caf::actor_cast<caf::actor>(here.gateway));
  here.tidy = [&] { here.services.garbage.free_all(); };
  bool discarding = true;
  bool freed = false;
  here.services.garbage.add({nullptr, [&](void*) {
                               BOOST_TEST(!discarding);
                               freed = true;
                             }});
  discarding = false;
  here.gateway->receive([](const contracts::discarded&) {},
                        caf::after(test::patience) >> [] {});  // drops the message, as the compute thread does
  BOOST_TEST(freed);
}

BOOST_AUTO_TEST_CASE(free_at_once_what_is_discarded_after_the_end) {
  test::lone_services here(true);
  here.services.garbage.add({nullptr, [](void*) {}});
  BOOST_TEST(here.services.garbage.stop().all.size() == 1u);
  bool freed = false;
  here.services.garbage.add({nullptr, [&](void*) { freed = true; }});
  BOOST_TEST(freed);
}

BOOST_AUTO_TEST_SUITE_END()
