// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "bench/support/report.hpp"
#include "own_folder.hpp"

using namespace troupe::bench;
using troupe::test::has;
using troupe::test::own_folder;

BOOST_AUTO_TEST_SUITE(reports)

BOOST_AUTO_TEST_CASE(rows_come_back_as_they_were_written) {
  const own_folder folder;
  const row full{"call", "us", {200, 100, 20}, 2, 1.5, false, "a note", {{190, 210}, {98, 104}, {19, 22}, {1.9, 2.1}}};
  const row bare{"idle", "bytes", {0, 300, 0}, 300, 512, true};
  write_report(folder.path, "some", {full, bare}, "CAF");
  const auto rows = read_report(folder.path, "some");
  BOOST_REQUIRE(rows.size() == 2);
  BOOST_TEST(rows[0].name == "call");
  BOOST_TEST(rows[0].unit == "us");
  BOOST_TEST(rows[0].value.peer == 200);
  BOOST_TEST(rows[0].value.troupe == 100);
  BOOST_TEST(rows[0].value.floor == 20);
  BOOST_TEST(rows[0].ratio == 2);
  BOOST_TEST(rows[0].bar == 1.5);
  BOOST_TEST(!rows[0].at_most);
  BOOST_TEST(rows[0].note == "a note");
  BOOST_TEST(rows[0].spreads.peer.low == 190);
  BOOST_TEST(rows[0].spreads.troupe.high == 104);
  BOOST_TEST(rows[0].spreads.floor.low == 19);
  BOOST_TEST(rows[0].spreads.ratio.high == 2.1);
  BOOST_TEST(rows[0].peer_name == "CAF");
  BOOST_TEST(rows[1].value.peer == 0);
  BOOST_TEST(rows[1].at_most);
  BOOST_TEST(!rows[1].spreads.troupe.known());
}

BOOST_AUTO_TEST_CASE(rows_without_a_spread_are_read) {
  const own_folder folder;
  const auto file = folder.write("old.json", R"([{"name": "call", "unit": "us", "peer": null, "troupe": 7, "floor": null,
                                                  "ratio": 7, "at_most": 20, "ok": true}])");
  const auto rows = read_rows(file);
  BOOST_REQUIRE(rows.size() == 1);
  BOOST_TEST(rows[0].value.troupe == 7);
  BOOST_TEST(!rows[0].spreads.troupe.known());
  BOOST_TEST(rows[0].peer_name == "");
}

BOOST_AUTO_TEST_CASE(a_missing_report_is_no_rows_and_a_missing_file_an_error) {
  const own_folder folder;
  BOOST_TEST(read_report(folder.path, "none").empty());
  BOOST_CHECK_EXCEPTION(read_rows(folder.path / "none.json"), std::runtime_error,
                        [](const auto& error) { return has(error.what(), "none.json': expected a JSON file"); });
}

BOOST_AUTO_TEST_CASE(a_malformed_report_is_named) {
  const own_folder folder;
  const auto names_file = [](const auto& error) { return has(error.what(), "bad.json' is no "); };
  for (const auto* text : {"[{\"name\": ", "{}", "[{\"name\": \"call\"}]", "[3]", ""}) {
    const auto file = folder.write("bad.json", text);
    BOOST_TEST_CONTEXT(text) { BOOST_CHECK_EXCEPTION(read_rows(file), std::runtime_error, names_file); }
  }
}

BOOST_AUTO_TEST_CASE(added_rows_take_the_place_of_rows_of_their_name) {
  const own_folder folder;
  write_report(folder.path, "some", {{"one", "us", {2, 1, 0}, 2, 1}, {"two", "us", {2, 1, 0}, 2, 1}});
  add_to_report(folder.path, "some", {{"three", "us", {2, 1, 0}, 2, 1}, {"one", "us", {9, 3, 0}, 3, 1}}, "beside");
  const auto rows = read_report(folder.path, "some");
  BOOST_REQUIRE(rows.size() == 3);
  BOOST_TEST(rows[0].ratio == 3);
  BOOST_TEST(rows[1].name == "two");
  BOOST_TEST(rows[2].name == "three");
}

BOOST_AUTO_TEST_CASE(a_spread_is_the_middle_half_and_holds_the_figure) {
  const auto middle = spread_of({5, 1, 3, 2, 4}, 3);
  BOOST_TEST(middle.low == 2);
  BOOST_TEST(middle.high == 4);
  BOOST_TEST(middle.relative_to(4) == 0.25);
  const auto best = spread_of({1, 2, 3, 4, 5}, 1);
  BOOST_TEST(best.low == 1);
  BOOST_TEST(best.high == 4);
  BOOST_TEST(spread_of({1, 2}, 1).high == 1.75);
  BOOST_TEST(!spread_of({1}, 1).known());
  BOOST_TEST(value_range{}.relative_to(4) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
