// SPDX-License-Identifier: BSD-3-Clause
#include "simulation/event_queue.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

using troupe::simulation::event_queue;

BOOST_AUTO_TEST_SUITE(event_queue_of_a_simulation)

BOOST_AUTO_TEST_CASE(events_happen_in_the_order_of_their_times_and_of_their_planning) {  // EQ-1, EQ-2
  event_queue events;
  std::mt19937_64 random(1);
  std::vector<std::pair<std::int64_t, int>> happened;
  for (int i = 0; i < 1000; ++i) {
    const auto due = static_cast<std::int64_t>(random() % 50);
    events.at(due, [&, due, i] {
      BOOST_TEST(events.now_ns() == due);
      happened.emplace_back(due, i);
    });
  }
  events.run_until(60);
  BOOST_TEST(happened.size() == 1000u);
  BOOST_TEST(events.happened() == 1000u);
  BOOST_TEST(std::is_sorted(happened.begin(), happened.end()));
  BOOST_TEST(events.now_ns() == 60);
}

BOOST_AUTO_TEST_CASE(an_event_may_plan_others_and_none_happens_in_the_past) {  // EQ-2
  event_queue events(100);
  std::vector<std::int64_t> times;
  events.at(7, [&] {  // a time that is over
    times.push_back(events.now_ns());
    events.in(5, [&] { times.push_back(events.now_ns()); });
  });
  events.run_until(104);
  BOOST_TEST(times == (std::vector<std::int64_t>{100}), boost::test_tools::per_element());
  BOOST_TEST(events.waiting() == 1u);
  BOOST_TEST(events.step());
  BOOST_TEST(times.back() == 105);
  BOOST_TEST(!events.step());
}

BOOST_AUTO_TEST_SUITE_END()
