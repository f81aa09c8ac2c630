// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <stdexcept>
#include <string>

#include "bench/support/curves.hpp"
#include "own_folder.hpp"

using namespace troupe::bench;
using troupe::test::has;
using troupe::test::own_folder;

namespace {

std::string plot_with(const std::string& x_axis, const std::string& series) {
  return R"([{"group": "messages", "name": "size", "title": "T", "how_to_read": "R", "x": )" + x_axis +
         R"(, "y": {"label": "time", "unit": "us", "log": true}, "series": )" + series + "}]";
}

constexpr const char* log_x = R"({"label": "size", "unit": "bytes", "log": true})";

}  // namespace

BOOST_AUTO_TEST_SUITE(files_of_curves)

BOOST_AUTO_TEST_CASE(plots_come_back_as_they_were_written) {
  const own_folder folder;
  plot made{.group = "grain",
            .name = "burst",
            .title = "Title",
            .how_to_read = "Lower is better.",
            .x = {"functions", "", true},
            .y = {"time", "us", false},
            .curves = {},
            .default_x = 256,
            .default_name = "burst"};
  made.curves = {{"raw TCP", role::floor, {{1, 2}, {4, 3, {2.5, 3.5}}}},
                 {"CAF", role::peer, {{1, 9}}},
                 {"troupe", role::troupe, {{1, 4}}},
                 {"TLS", role::variant, {{1, 5}}}};
  plot other = made;
  other.default_x.reset();
  other.default_name.clear();
  write_curves(folder.path, "some", {made, other});
  const auto plots = read_curves(folder.path / "some.curves.json");
  BOOST_REQUIRE(plots.size() == 2);
  const auto& came = plots[0];
  BOOST_TEST(came.group == "grain");
  BOOST_TEST(came.name == "burst");
  BOOST_TEST(came.title == "Title");
  BOOST_TEST(came.how_to_read == "Lower is better.");
  BOOST_TEST(came.x.label == "functions");
  BOOST_TEST(came.x.log);
  BOOST_TEST(came.y.unit == "us");
  BOOST_TEST(!came.y.log);
  BOOST_REQUIRE(came.curves.size() == 4);
  BOOST_TEST(came.curves[0].name == "raw TCP");
  BOOST_TEST((came.curves[0].part == role::floor));
  BOOST_TEST((came.curves[1].part == role::peer));
  BOOST_TEST((came.curves[2].part == role::troupe));
  BOOST_TEST((came.curves[3].part == role::variant));
  BOOST_REQUIRE(came.curves[0].points.size() == 2);
  BOOST_TEST(!came.curves[0].points[0].range.known());
  BOOST_TEST(came.curves[0].points[1].x == 4);
  BOOST_TEST(came.curves[0].points[1].y == 3);
  BOOST_TEST(came.curves[0].points[1].range.low == 2.5);
  BOOST_TEST(came.curves[0].points[1].range.high == 3.5);
  BOOST_TEST(came.default_x.value() == 256);
  BOOST_TEST(came.default_name == "burst");
  BOOST_TEST(!plots[1].default_x.has_value());
}

BOOST_AUTO_TEST_CASE(what_no_picture_can_show_is_refused_with_the_name_of_the_plot) {
  const own_folder folder;
  const auto refused = [&](const std::string& text, const std::string& why) {
    const auto file = folder.write("bad.curves.json", text);
    BOOST_TEST_CONTEXT(text) {
      BOOST_CHECK_EXCEPTION(read_curves(file), std::runtime_error,
                            [&](const auto& error) { return has(error.what(), "bad.curves.json") && has(error.what(), why); });
    }
  };
  refused(plot_with(log_x, R"([{"name": "a", "role": "other", "points": [[1, 2]]}])"), "plot 0 \"size\": the role is 'other'");
  refused(plot_with(log_x, R"([{"name": "a", "role": "peer", "points": [[1, 2, 3]]}])"), "a point is [1,2,3]");
  refused(plot_with(log_x, R"([{"name": "a", "role": "peer", "points": []}])"), "there is no point in it");
  refused(plot_with(log_x, R"([{"name": "a", "role": "peer", "points": [[-1, 2]]}])"), "'a' has a value below 0");
  refused(plot_with(log_x, R"([{"name": "a", "role": "peer", "points": [[1, -2]]}])"), "'a' has a value below 0");
  refused(plot_with(log_x, R"([{"name": "a", "role": "peer", "points": [[1, "x"]]}])"), "plot 0 \"size\"");
  refused(R"([{"group": "messages"}])", "key 'name' not found");
  refused(R"({"group": "messages"})", "expected a list of plots");
  refused("[", "is no JSON");
}

BOOST_AUTO_TEST_CASE(zero_on_a_logarithmic_axis_is_read) {
  const own_folder folder;
  const auto file = folder.write("a.curves.json", plot_with(log_x, R"([{"name": "a", "role": "peer", "points": [[0, 2]]}])"));
  BOOST_TEST(read_curves(file).size() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
