// SPDX-License-Identifier: BSD-3-Clause
#include "bench/scale/scale_figures.hpp"

#include <string>

#include <boost/test/unit_test.hpp>

using namespace troupe::bench;

namespace {

scale_effort small_effort(int& told) {
  scale_effort how;
  how.quick = true;
  how.hours = 2;
  how.hours_a_seed = 1;
  how.tell = [&](const std::string&) { ++told; };
  return how;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(figures_of_simulated_clusters)

BOOST_AUTO_TEST_CASE(a_pass_is_simulated_once_and_gives_the_same_figures_again) {  // FG-1
  int told = 0;
  scale_figures figures(small_effort(told));
  const auto first = figures.pass("tree", 100);
  BOOST_TEST(figures.pass("tree", 100).time_ms == first.time_ms);
  BOOST_TEST(told == 1);
  BOOST_TEST(scale_figures(small_effort(told)).pass("tree", 100).busiest_messages == first.busiest_messages);
  BOOST_TEST(first.busiest_messages >= 16u);  // to each of its children and from it
  BOOST_TEST(first.messages >= 2 * 2.0 * 99 / 100);
  BOOST_TEST(first.largest_purse > 0u);
  BOOST_TEST(figures.text().find("\ntree ") != std::string::npos);
  BOOST_TEST(figures.json().find("\"shape\": \"tree\"") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(rows_compare_many_nodes_with_a_hundred) {
  int told = 0;
  scale_figures figures(small_effort(told));
  const auto busiest = scale_row("scale_busiest", figures);
  BOOST_TEST(busiest.value.peer == static_cast<double>(figures.pass("tree", 100).busiest_messages));
  BOOST_TEST(busiest.value.troupe == static_cast<double>(figures.pass("tree", 400).busiest_messages));
  BOOST_TEST(busiest.at_most);
  const auto members = scale_row("scale_membership", figures);
  BOOST_TEST(members.holds());
  BOOST_TEST(members.value.peer > 10);
  const auto soaked = scale_row("soak_hours", figures);
  BOOST_TEST(soaked.value.troupe >= 2);
  BOOST_TEST(!soaked.holds());
}

BOOST_AUTO_TEST_CASE(membership_of_more_nodes_knows_as_soon_and_sends_as_much) {
  const auto small = simulate_membership(50, network_costs::one_room(), 1, [](const auto&) {});
  const auto large = simulate_membership(200, network_costs::one_room(), 1, [](const auto&) {});
  BOOST_TEST(large.messages < 1.2 * small.messages);
  BOOST_TEST(large.bytes < 1.2 * small.bytes);
  BOOST_TEST(small.bytes > 50 * small.messages);  // messages have bytes
  for (const auto& each : {small, large}) {
    BOOST_TEST(each.join_s < 1);
    BOOST_TEST(each.crash_s < 1);
    BOOST_TEST(each.freeze_s > 0.5);
    BOOST_TEST(each.freeze_s < 4);
  }
  BOOST_TEST(large.bytes_of_memory > 2 * small.bytes_of_memory);
}

BOOST_AUTO_TEST_CASE(a_pass_with_too_many_messages_is_left_out) {
  BOOST_TEST(scale_figures::too_large("all_to_all", 1000) == "");
  BOOST_TEST(scale_figures::too_large("all_to_all", 10'000) == "not simulated: 200 million messages");
  BOOST_TEST(scale_figures::too_large("tree", 10'000) == "");
}

BOOST_AUTO_TEST_SUITE_END()
