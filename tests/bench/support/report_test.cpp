// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <stdexcept>
#include <string>
#include <vector>

#include "bench/support/bench_program.hpp"
#include "bench/support/json_file.hpp"
#include "bench/support/size_ladder.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::bench;
using nlohmann::json;
using troupe::apps::test::content_of;
using troupe::apps::test::says;
using troupe::apps::test::temporary_folder;

namespace {

const row_definition call{"call", "us", at_least(1.5), "A call."};
const row_definition idle{"idle", "bytes", at_most(512), "An idle thing."};

row small(const std::string& name, double ratio) {
  return {.value = {ratio, 1, 0}, .ratio = ratio, .name = name, .unit = "us", .should_be = at_least(1)};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reports)

BOOST_AUTO_TEST_CASE(rows_are_written_with_all_that_is_known_of_them) {
  const temporary_folder folder;
  const auto full = labelled({{200, 100, 20}, 2, "a note", {{190, 210}, {98, 104}, {19, 22}, {1.9, 2.1}}}, call);
  write_report(folder.path(), "some", {full, labelled({{0, 600, 0}, 600}, idle)}, "CAF");
  const auto rows = read_json(folder.path() / "some.json");
  BOOST_TEST((rows.at(0) == json::parse(R"({"name": "call", "unit": "us", "peer": 200.0, "troupe": 100.0, "floor": 20.0,
    "ratio": 2.0, "at_least": 1.5, "ok": true, "peer_name": "CAF", "text": "A call.", "note": "a note",
    "spread": {"peer": [190.0, 210.0], "troupe": [98.0, 104.0], "floor": [19.0, 22.0], "ratio": [1.9, 2.1]}})")));
  BOOST_TEST((rows.at(1) == json::parse(R"({"name": "idle", "unit": "bytes", "peer": null, "troupe": 600.0, "floor": null,
    "ratio": 600.0, "at_most": 512.0, "ok": false, "peer_name": "CAF", "text": "An idle thing."})")));
  const auto table = content_of(folder.path() / "some.txt");
  for (const std::string part : {"CAF", "\ncall  us", ">=  1.50  ok  (a note)\n", "<= 512.00  short\n"})
    BOOST_TEST(table.find(part) != std::string::npos, part);
  BOOST_TEST(table == table_of({full, labelled({{0, 600, 0}, 600}, idle)}, "CAF"));
}

BOOST_AUTO_TEST_CASE(a_ladder_of_sizes_has_its_worst_step_as_its_row) {
  const auto sizes = sizes_of_ladder(false);
  BOOST_TEST(sizes.front() == 64U);
  BOOST_TEST(sizes.back() == std::size_t{256} << 20);
  BOOST_TEST(sizes.size() == 12U);
  const auto found = row_of_ladder({{64, 30, 10}, {4 << 10, 40, 50}, {16 << 20, 70, 70}});
  BOOST_TEST(found.ratio == 0.8);
  BOOST_TEST(found.value.peer == 40);
  BOOST_TEST(found.value.troupe == 50);
  BOOST_TEST(found.note == "worst at 4 KiB; all 64 B 3.00, 4 KiB 0.80, 16 MiB 1.00");
}

BOOST_AUTO_TEST_CASE(added_rows_take_the_place_of_rows_of_their_name) {
  const temporary_folder folder;
  add_to_report(folder.path(), "some", {small("one", 2), small("two", 2)}, "beside");
  add_to_report(folder.path(), "some", {small("three", 2), small("one", 3)}, "beside");
  const auto rows = read_json(folder.path() / "some.json");
  BOOST_REQUIRE(rows.size() == 3);
  BOOST_TEST((rows[0]["ratio"] == 3));
  BOOST_TEST((rows[1]["name"] == "two"));
  BOOST_TEST((rows[2]["name"] == "three"));
}

BOOST_AUTO_TEST_CASE(rows_are_added_to_no_file_that_is_no_report) {
  const temporary_folder folder;
  for (const auto* text : {"[{\"name\": ", "{}", "[{\"name\": \"call\"}]", "[3]", ""}) {
    folder.write("bad.json", text);
    BOOST_CHECK_EXCEPTION(add_to_report(folder.path(), "bad", {small("one", 2)}, "beside"), std::runtime_error,
                          says({"bad.json' is no "}));
  }
}

BOOST_AUTO_TEST_CASE(a_spread_is_the_middle_half_and_holds_the_figure) {
  const auto half = spread_of({5, 1, 3, 2, 4}, 3);
  BOOST_TEST(half.low == 2);
  BOOST_TEST(half.high == 4);
  const auto best = spread_of({1, 2, 3, 4, 5}, 1);
  BOOST_TEST(best.low == 1);
  BOOST_TEST(best.high == 4);
  BOOST_TEST(spread_of({1, 2}, 1).high == 1.75);
  BOOST_TEST(!spread_of({1}, 1).known());
}

BOOST_AUTO_TEST_CASE(curves_are_written_with_the_ranges_and_the_default_that_are_known) {
  const temporary_folder folder;
  plot made{"Title", "Lower is better.", {"functions", "", true}, {"time", "us", false}};
  made.group = "grain";
  made.name = "burst";
  made.curves = {{"raw TCP", role::floor, {{1, 2}}}, {"troupe", role::troupe, {{1, 4}, {4, 3, {2.5, 3.5}}}}};
  auto with_default = made;
  with_default.default_x = 256;
  with_default.default_name = "burst";
  write_curves(folder.path(), "some", {made, with_default});
  const auto plots = read_json(folder.path() / "some.curves.json");
  auto expected = json::parse(R"({"group": "grain", "name": "burst", "title": "Title", "how_to_read": "Lower is better.",
    "x": {"label": "functions", "unit": "", "log": true}, "y": {"label": "time", "unit": "us", "log": false},
    "series": [{"name": "raw TCP", "role": "floor", "points": [[1.0, 2.0]]},
               {"name": "troupe", "role": "troupe", "points": [[1.0, 4.0], [4.0, 3.0, 2.5, 3.5]]}]})");
  BOOST_TEST((plots.at(0) == expected));
  expected["default_x"] = 256;
  expected["default_name"] = "burst";
  BOOST_TEST((plots.at(1) == expected));
}

BOOST_AUTO_TEST_CASE(a_curve_has_a_point_for_each_value) {
  const auto runs = curve_over(std::vector{1, 4}, "runs", role::peer, [](int x) { return std::vector<double>{1, 2, 3.0 * x}; });
  BOOST_REQUIRE(runs.points.size() == 2);
  BOOST_TEST(runs.points[1].x == 4);
  BOOST_TEST(runs.points[1].y == 2);
  BOOST_TEST(runs.points[1].range.high == 7);
  const auto points = curve_over(std::vector{1, 4}, "points", role::peer, [](int x) { return point{2.0 * x, 5}; });
  BOOST_TEST(points.points[1].x == 8);
}

BOOST_AUTO_TEST_CASE(what_fails_is_left_out_and_what_is_not_here_is_no_failure) {
  const auto fails = [](bool) -> row { throw std::runtime_error("as the test wants it"); };
  const auto lacks = [](bool) -> row { throw skipped("as the test wants it"); };
  const auto works = [](bool quick) -> row { return {{1, quick ? 2.0 : 3.0, 0}, 2}; };
  const auto draws = [](bool) -> plot { return {"Title", "How."}; };
  const auto found = measure_each({{"lacks", "us", at_least(1), "", lacks}, {"works", "us", at_least(1), "Works.", works}},
                                  plots_of_group("grain", {{"draws", draws}}), true);
  BOOST_TEST(found.is_whole);
  BOOST_REQUIRE(found.rows.size() == 1);
  BOOST_TEST(found.rows[0].name == "works");
  BOOST_TEST(found.rows[0].text == "Works.");
  BOOST_TEST(found.rows[0].value.troupe == 2);
  BOOST_REQUIRE(found.plots.size() == 1);
  BOOST_TEST(found.plots[0].name == "draws");
  BOOST_TEST(found.plots[0].group == "grain");
  BOOST_TEST(!measure_each({{"fails", "us", at_least(1), "", fails}}, {}, true).is_whole);
}

BOOST_AUTO_TEST_CASE(rows_and_plots_are_chosen_by_their_names) {
  std::vector<row_definition> rows{call, idle};
  std::vector<plot_definition> plots{{"draws"}};
  keep_only({"idle", "draws"}, rows, plots);
  BOOST_REQUIRE(rows.size() == 1);
  BOOST_TEST(rows[0].name == "idle");
  BOOST_TEST(plots.size() == 1);
  keep_only({}, rows, plots);
  BOOST_TEST(rows.size() == 1);
  BOOST_CHECK_EXCEPTION(keep_only({"other"}, rows, plots), wrong_arguments,
                        says({"there is no row or plot 'other'; there are idle draws"}));
}

BOOST_AUTO_TEST_SUITE_END()
