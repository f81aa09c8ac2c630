// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/deadline_clock.hpp>

#include <boost/test/unit_test.hpp>

#include <future>
#include <memory>
#include <vector>

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

BOOST_AUTO_TEST_SUITE(deadline_clock)

BOOST_AUTO_TEST_CASE(alarms_of_a_clock_that_stands_still_ring_when_time_passes_by_hand) {  // DC-1, DC-3
  troupe::support::deadline_clock clock;
  clock.stand_still();
  std::vector<int> rung;
  clock.set(40ms, [&] {
    rung.push_back(40);
    clock.set(5ms, [&] { rung.push_back(45); });
  });
  clock.set(20ms, [&] { rung.push_back(20); });
  const auto off = clock.set(30ms, [&] { rung.push_back(30); });
  clock.set(1h, [&] { rung.push_back(1); });
  clock.advance(19ms);
  BOOST_TEST(rung.empty());
  clock.call_off(off);
  clock.advance(26ms);
  BOOST_TEST(rung == (std::vector{20, 40}), boost::test_tools::per_element());
  clock.advance(5ms);
  BOOST_TEST(rung == (std::vector{20, 40, 45}), boost::test_tools::per_element());
  clock.stop();
  clock.advance(2h);
  BOOST_TEST(rung.size() == 3U);
}

// DC-1, DC-3
BOOST_AUTO_TEST_CASE(alarms_ring_once_in_the_order_of_their_times_and_not_before) {
  troupe::support::deadline_clock clock;
  const auto begin = clock_type::now();
  std::vector<int> rung;  // until `all` is set, only the clock's thread uses `rung`
  std::promise<void> all;
  clock.set(40ms, [&] {
    rung.push_back(40);
    all.set_value();
  });
  clock.set(1h, [&] { rung.push_back(1); });
  clock.set(20ms, [&] { rung.push_back(20); });
  all.get_future().wait();
  BOOST_TEST(rung == (std::vector{20, 40}), boost::test_tools::per_element());
  BOOST_TEST((clock_type::now() - begin >= 40ms));
  BOOST_TEST(clock.pending() == 1);
}

// DC-1
BOOST_AUTO_TEST_CASE(an_alarm_whose_id_was_reserved_rings_at_its_time_or_not_at_all) {
  troupe::support::deadline_clock clock;
  const auto begin = clock_type::now();
  const auto first = clock.reserve(20ms);
  const auto second = clock.reserve(20ms);
  BOOST_TEST((first != second));
  BOOST_TEST(clock.pending() == 0);
  std::promise<void> rung;
  clock.set(first, [] { BOOST_ERROR("rang"); });
  clock.call_off(first);
  clock.set(second, [&] { rung.set_value(); });
  rung.get_future().wait();
  BOOST_TEST((clock_type::now() - begin >= 20ms));
}

// DC-1, DC-2
BOOST_AUTO_TEST_CASE(an_alarm_that_was_called_off_keeps_nothing) {
  troupe::support::deadline_clock clock;
  auto kept = std::make_shared<int>(1);
  std::promise<void> later;
  const auto first = clock.set(20ms, [kept, &later] { later.set_value(); });  // set_value() throws if it is called twice
  clock.call_off(first);
  clock.call_off(first);
  clock.call_off({});
  BOOST_TEST(kept.use_count() == 1);
  clock.set(40ms, [&] { later.set_value(); });
  later.get_future().wait();
  BOOST_TEST(clock.pending() == 0);
}

BOOST_AUTO_TEST_CASE(a_hundred_thousand_that_are_called_off_leave_nothing) {
  troupe::support::deadline_clock clock;
  for (int i = 0; i < 100'000; ++i) clock.call_off(clock.set(60s, [] {}));
  BOOST_TEST(clock.pending() == 0);
}

// DC-3
BOOST_AUTO_TEST_CASE(a_stopped_clock_rings_no_more) {
  troupe::support::deadline_clock clock;
  auto kept = std::make_shared<int>(1);
  clock.set(1h, [kept] {});
  clock.stop();
  clock.set(0ns, [kept] { BOOST_ERROR("rang after the stop"); });
  BOOST_TEST(kept.use_count() == 1);
  clock.stop();
}

BOOST_AUTO_TEST_SUITE_END()
