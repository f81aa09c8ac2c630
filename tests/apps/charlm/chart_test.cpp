// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/chart.hpp"

#include <boost/test/unit_test.hpp>

#include <limits>
#include <string>
#include <utility>
#include <vector>

using namespace troupe::apps::charlm;

BOOST_AUTO_TEST_SUITE(chart_of_losses)

namespace {

/// Every value of an attribute in an SVG.
std::vector<std::string> values_of(const std::string& svg, const std::string& attribute) {
  std::vector<std::string> found;
  const auto begin = attribute + "=\"";
  for (auto at = svg.find(begin); at != std::string::npos; at = svg.find(begin, at + 1))
    found.push_back(svg.substr(at + begin.size(), svg.find('"', at + begin.size()) - at - begin.size()));
  return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(ticks_are_round_numbers_inside_the_range) {  // CH-2
  BOOST_TEST(ticks(0, 800, 8) == (std::vector<double>{0, 100, 200, 300, 400, 500, 600, 700, 800}),
             boost::test_tools::per_element());
  BOOST_TEST(ticks(1.31, 4.6, 6) == (std::vector<double>{2, 3, 4}), boost::test_tools::per_element());
  for (const auto& [low, high] : {std::pair{-3.2, 17.9}, {0.0, 1e-3}, {1e6, 3e6}})
    for (const auto value : ticks(low, high, 7)) BOOST_TEST((value >= low && value <= high));
}

BOOST_AUTO_TEST_CASE(every_finite_point_lies_inside_the_axes) {  // CH-1
  chart drawn;
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  drawn.series.push_back({"a", "#000000", 2, true, {{0, 4.4}, {10, nan}, {20, -7}, {1e5, 2}}});
  drawn.levels.push_back({"b", "#000000", 9});
  const auto svg = drawn.to_svg();
  BOOST_TEST(svg.find("nan") == std::string::npos);
  const auto xs = values_of(svg, "cx");
  const auto ys = values_of(svg, "cy");
  BOOST_TEST(xs.size() == 3u);
  for (const auto& x : xs) BOOST_TEST((std::stod(x) >= 70 && std::stod(x) <= 836), x);
  for (const auto& y : ys) BOOST_TEST((std::stod(y) >= 84 && std::stod(y) <= 418), y);
}

BOOST_AUTO_TEST_CASE(a_chart_without_points_is_still_one) {
  const auto svg = chart{.title = "<&>", .x_label = "", .y_label = "", .series = {{}}, .levels = {}}.to_svg();
  BOOST_TEST(svg.find("&lt;&amp;&gt;") != std::string::npos);
  BOOST_TEST(svg.find("nan") == std::string::npos);
  BOOST_TEST(svg.find("inf") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(thinning_keeps_means) {
  std::vector<std::pair<double, double>> points;
  for (int i = 0; i < 1000; ++i) points.emplace_back(i, i % 2);
  const auto few = thinned(points, 10);
  BOOST_TEST(few.size() == 10u);
  BOOST_TEST(few[0].first == 49.5);
  BOOST_TEST(few[0].second == 0.5);
  BOOST_TEST(thinned(points, 1000).size() == 1000u);
}

BOOST_AUTO_TEST_SUITE_END()
