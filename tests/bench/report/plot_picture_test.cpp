// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "bench/report/plot_picture.hpp"
#include "../support/own_folder.hpp"

using namespace troupe::bench;
using troupe::test::has;

namespace {

plot plot_of_calls() {
  return {.group = "messages",
          .name = "calls",
          .title = "Calls <by> size",
          .how_to_read = "Lower is better.",
          .x = {"size", "bytes", true},
          .y = {"time", "us", true},
          .curves = {{"floor & co", role::floor, {{1024, 10}, {1, 5}}},
                     {"troupe", role::troupe, {{1, 20, {18, 24}}, {1024, 40, {35, 50}}}}}};
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pictures_of_plots)

BOOST_AUTO_TEST_CASE(roles_have_colours_of_their_own_and_eight_curves_differ) {
  std::vector<curve> curves{{"f", role::floor}, {"t", role::troupe}, {"p", role::peer}};
  for (int i = 0; i < 4; ++i) curves.push_back({"v", role::variant});
  curves.push_back({"second peer", role::peer});
  const auto looks = looks_of(curves);
  BOOST_TEST(looks[0].colour == 0);
  BOOST_TEST(looks[1].colour == 1);
  BOOST_TEST(looks[2].colour == 2);
  std::set<int> colours;
  std::set<int> marks;
  for (const auto& each : looks) {
    colours.insert(each.colour);
    marks.insert(each.mark);
  }
  BOOST_TEST(colours.size() == 8);
  BOOST_TEST(marks.size() == 8);
  BOOST_TEST(looks.back().dashes == looks[2].dashes);
}

BOOST_AUTO_TEST_CASE(curves_after_the_eighth_differ_in_their_dashes) {
  const std::vector<curve> curves(10, {"v", role::variant});
  std::set<std::tuple<int, std::string>> looks;
  for (const auto& each : looks_of(curves)) looks.emplace(each.colour, each.dashes);
  BOOST_TEST(looks.size() == 10);
}

BOOST_AUTO_TEST_CASE(the_picture_has_the_axes_with_units_and_a_band_where_the_range_is_known) {
  const auto text = picture_of(plot_of_calls());
  BOOST_TEST(has(text, ">1 KiB</text>"));
  BOOST_TEST(has(text, ">10 µs</text>"));
  BOOST_TEST(has(text, ">size</text>"));
  BOOST_TEST(has(text, ">time</text>"));
  BOOST_TEST(count_of(text, "class=\"band\"") == 1);
  BOOST_TEST(count_of(text, "class=\"hit\"") == 4);
  BOOST_TEST(has(text, "troupe\nsize: 1 KiB\ntime: 40 µs (35 µs to 50 µs)</title>"));
  BOOST_TEST(has(text, "Calls &lt;by&gt; size"));
  BOOST_TEST(has(text, "floor &amp; co\n"));
}

BOOST_AUTO_TEST_CASE(points_are_joined_in_the_order_of_x) {
  auto from = plot_of_calls();
  from.curves.resize(1);
  const auto text = picture_of(from);
  const auto line = text.find("<path d=\"M58.0 ");
  BOOST_REQUIRE(line != std::string::npos);
  BOOST_TEST(has(text.substr(line, 40), " L342.0 "));
}

BOOST_AUTO_TEST_CASE(one_point_with_a_range_has_a_line_for_it) {
  auto from = plot_of_calls();
  from.curves[1].points.resize(1);
  const auto text = picture_of(from);
  BOOST_TEST(count_of(text, "class=\"whisker\"") == 1);
  BOOST_TEST(count_of(text, "class=\"band\"") == 0);
}

BOOST_AUTO_TEST_CASE(the_default_is_marked_with_its_name_even_outside_of_the_points) {
  auto from = plot_of_calls();
  BOOST_TEST(!has(picture_of(from), "class=\"default\""));
  BOOST_TEST(has(picture_of(from), "cx=\"342.0\""));
  from.default_x = 65536;
  BOOST_TEST(has(picture_of(from), "class=\"default\">default: 64 KiB</text>"));
  from.default_name = "inline_limit";
  BOOST_TEST(!has(picture_of(from), "cx=\"342.0\""));  // the axis reaches beyond the last point
  BOOST_TEST(has(picture_of(from), ">default of inline_limit: 64 KiB</text>"));
  BOOST_TEST(has(picture_of(from), "x1=\"342.0\" y1=\"35.0\" x2=\"342.0\" y2=\"234.0\" class=\"default\""));
}

BOOST_AUTO_TEST_CASE(a_name_of_a_default_that_the_picture_has_no_room_for_is_in_the_legend) {
  auto from = plot_of_calls();
  from.default_x = 64;
  from.default_name = "short";
  BOOST_TEST(!has(legend_of(from), "default"));
  from.default_name = "middleman.max-consecutive-reads-of-a-connection";
  BOOST_TEST(has(picture_of(from), ">default: 64 B</text>"));
  BOOST_TEST(has(legend_of(from), "default of middleman.max-consecutive-reads-of-a-connection</li>"));
}

BOOST_AUTO_TEST_CASE(the_legend_names_each_curve) {
  const auto text = legend_of(plot_of_calls());
  BOOST_TEST(count_of(text, "<li>") == 2);
  BOOST_TEST(has(text, "floor &amp; co</li>"));
}

BOOST_AUTO_TEST_SUITE_END()
