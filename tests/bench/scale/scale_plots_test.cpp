// SPDX-License-Identifier: BSD-3-Clause
#include "bench/scale/scale_plots.hpp"

#include <string>

#include <boost/test/unit_test.hpp>

using namespace troupe::bench;

BOOST_AUTO_TEST_SUITE(plots_of_simulated_clusters)

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
  BOOST_TEST(passes[2].curves[1].points[0].y == static_cast<double>(few.largest_purse));
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
