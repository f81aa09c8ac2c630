// SPDX-License-Identifier: BSD-3-Clause
#include "bench/scale/scale_figures.hpp"

#include <stdexcept>
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
  BOOST_TEST(first.largest_weight > 0u);
  BOOST_TEST(figures.text().find("\ntree ") != std::string::npos);
  BOOST_TEST(figures.json().find("\"shape\": \"tree\"") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(rows_compare_many_nodes_with_a_hundred) {
  int told = 0;
  scale_figures figures(small_effort(told));
  const auto measured = [&](const char* name) {
    for (const auto& each : scale_rows())
      if (each.name == name) return labelled(each.measure(figures), each);
    throw std::logic_error("there is no row of this name");
  };
  const auto busiest = measured("scale_busiest");
  BOOST_TEST(busiest.value.peer == static_cast<double>(figures.pass("tree", 100).busiest_messages));
  BOOST_TEST(busiest.value.troupe == static_cast<double>(figures.pass("tree", 400).busiest_messages));
  BOOST_TEST(busiest.should_be.is_upper);
  const auto members = measured("scale_membership");
  BOOST_TEST(members.holds());
  BOOST_TEST(members.value.peer > 10);
  const auto soaked = measured("soak_hours");
  BOOST_TEST(soaked.value.troupe >= 2);
  BOOST_TEST(!soaked.holds());
}

BOOST_AUTO_TEST_CASE(membership_of_more_nodes_knows_as_soon_and_sends_as_much) {
  const auto small = simulate_membership(50, network_costs::one_rack(), 1, [](const auto&) {});
  const auto large = simulate_membership(200, network_costs::one_rack(), 1, [](const auto&) {});
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

BOOST_AUTO_TEST_CASE(what_was_simulated_has_a_point_at_its_count_of_nodes) {
  scale_effort how;
  how.tell = [](const std::string&) {};
  scale_figures figures(how);
  BOOST_TEST(plots_of(figures).empty());
  figures.pass("tree", 10);
  const auto few = figures.pass("all_to_all", 10);
  const auto many = figures.pass("all_to_all", 20);
  const auto passes = plots_of(figures);
  BOOST_REQUIRE(passes.size() == 3);
  BOOST_REQUIRE(passes[0].curves.size() == 2);
  BOOST_TEST(passes[0].curves[0].name == "tree");
  BOOST_TEST(passes[0].curves[1].name == "all to all");
  BOOST_REQUIRE(passes[0].curves[1].points.size() == 2);
  BOOST_TEST(passes[0].curves[1].points[1].x == 20);
  BOOST_TEST(passes[0].curves[1].points[1].y == many.time_ms);
  BOOST_TEST(passes[1].curves[1].points[0].y == static_cast<double>(few.busiest_messages));
  BOOST_TEST(passes[2].curves[1].points[0].y == static_cast<double>(few.largest_weight));
  const auto members = figures.membership(10);
  const auto all = plots_of(figures);
  BOOST_REQUIRE(all.size() == 5);
  BOOST_TEST(all[3].curves.at(0).points.at(0).x == 10);
  BOOST_TEST(all[3].curves.at(0).points.at(0).y == members.messages);
  BOOST_TEST(all[3].curves.at(1).points.at(0).y == members.busiest_messages);
  BOOST_TEST(all[4].curves.at(0).points.at(0).y == members.join_s);
  BOOST_TEST(all[4].curves.at(2).points.at(0).y == members.freeze_s);
}

BOOST_AUTO_TEST_SUITE_END()
