// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <stdexcept>
#include <string>
#include <vector>

#include "bench/report/comparison.hpp"
#include "../support/own_folder.hpp"

using namespace troupe::bench;
using troupe::test::has;
using troupe::test::own_folder;

namespace {

/// A row whose ratio should be at least 1, or at most 1.
row row_with(double ratio, bool at_most = false, row_spreads spreads = {}) {
  return {"call", "us", {100 * ratio, 100, 0}, ratio, 1, at_most, "", spreads};
}

compared_row only_row(const row& before, const row& after) {
  const auto rows = compare({{"some", "", {before}}}, {{"some", "", {after}}}, 0.05);
  BOOST_REQUIRE(rows.size() == 1);
  return rows[0];
}

}  // namespace

BOOST_AUTO_TEST_SUITE(comparisons_of_runs)

BOOST_AUTO_TEST_CASE(a_change_is_worse_or_better_by_the_direction_of_the_bar) {
  BOOST_TEST((only_row(row_with(2), row_with(1.5)).what == verdict::worse));
  BOOST_TEST((only_row(row_with(2), row_with(2.5)).what == verdict::better));
  BOOST_TEST((only_row(row_with(2, true), row_with(1.5, true)).what == verdict::better));
  BOOST_TEST((only_row(row_with(2, true), row_with(2.5, true)).what == verdict::worse));
  BOOST_TEST(only_row(row_with(2), row_with(1.5)).change == -0.25);
}

BOOST_AUTO_TEST_CASE(small_changes_are_the_same) {
  BOOST_TEST((only_row(row_with(2), row_with(2)).what == verdict::same));
  BOOST_TEST((only_row(row_with(2), row_with(1.91)).what == verdict::same));
  BOOST_TEST((only_row(row_with(2), row_with(1.89)).what == verdict::worse));
}

BOOST_AUTO_TEST_CASE(the_spreads_of_both_runs_add_up) {
  const row_spreads of_before{.peer = {190, 210}, .troupe = {95, 105}};  // 5 % each of 200 and 100
  const row_spreads of_after{.troupe = {97, 103}};                       // 3 %
  const auto same = only_row(row_with(2, false, of_before), row_with(1.76, false, of_after));
  BOOST_TEST(same.noise == 0.13, boost::test_tools::tolerance(1e-9));
  BOOST_TEST((same.what == verdict::same));
  BOOST_TEST((only_row(row_with(2, false, of_before), row_with(1.72, false, of_after)).what == verdict::worse));
}

BOOST_AUTO_TEST_CASE(the_spread_of_the_ratio_itself_counts_if_it_is_known) {
  const row_spreads with_ratio{.peer = {100, 300}, .troupe = {95, 105}, .ratio = {1.98, 2.02}};
  BOOST_TEST(only_row(row_with(2, false, with_ratio), row_with(2, false, with_ratio)).noise == 0.05);
  const row_spreads wide{.ratio = {1.8, 2.2}};
  BOOST_TEST(only_row(row_with(2, false, wide), row_with(2)).noise == 0.1, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(a_count_that_was_0_is_worse_if_it_grows) {
  BOOST_TEST((only_row(row_with(0, true), row_with(1, true)).what == verdict::worse));
  BOOST_TEST((only_row(row_with(0, true), row_with(0, true)).what == verdict::same));
  BOOST_TEST((only_row(row_with(1, true), row_with(0, true)).what == verdict::better));
}

BOOST_AUTO_TEST_CASE(rows_that_only_one_run_has_are_named) {
  row gone = row_with(2);
  gone.name = "gone";
  row fresh = row_with(2);
  fresh.name = "fresh";
  const auto rows = compare({{"some", "", {gone, row_with(2)}}}, {{"some", "", {row_with(2), fresh}}}, 0.05);
  const auto text = comparison_as_text(rows, false);
  BOOST_TEST(has(text, "some/gone "));
  BOOST_TEST(has(text, "only in OLD\n"));
  BOOST_TEST(has(text, "some/fresh "));
  BOOST_TEST(has(text, "only in NEW\n"));
  BOOST_TEST(!has(text, "some/call "));
  BOOST_TEST(has(comparison_as_text(rows, true), "some/call "));
  BOOST_TEST(has(text, "0 worse, 0 better, 1 the same within the noise; 1 only in OLD, 1 only in NEW\n"));
}

BOOST_AUTO_TEST_CASE(the_table_shows_both_figures) {
  const auto text = comparison_as_text({only_row(row_with(2), row_with(1.5))}, false);
  BOOST_TEST(has(text, "100 -> 100"));
  BOOST_TEST(has(text, "2 -> 1.5"));
  BOOST_TEST(has(text, "-25.0%"));
  BOOST_TEST(has(text, " 5.0%  worse\n"));
}

BOOST_AUTO_TEST_CASE(rows_of_one_name_in_two_reports_are_two_rows) {
  const auto rows = compare({{"one", "", {row_with(2)}}, {"two", "", {row_with(4)}}},
                            {{"one", "", {row_with(2)}}, {"two", "", {row_with(2)}}}, 0.05);
  BOOST_REQUIRE(rows.size() == 2);
  BOOST_TEST((rows[0].what == verdict::same));
  BOOST_TEST((rows[1].what == verdict::worse));
}

BOOST_AUTO_TEST_CASE(two_files_are_compared_whatever_their_names_are) {
  const own_folder folder;
  write_report(folder.path, "before", {row_with(2)});
  write_report(folder.path, "after", {row_with(1)});
  const auto [before, after] = read_both(folder.path / "before.json", folder.path / "after.json");
  const auto rows = compare(before.reports, after.reports, 0.05);
  BOOST_REQUIRE(rows.size() == 1);
  BOOST_TEST((rows[0].what == verdict::worse));
  BOOST_TEST(rows[0].report == "after");
}

BOOST_AUTO_TEST_CASE(a_file_is_compared_with_the_report_of_its_name_in_a_folder) {
  const own_folder folder;
  write_report(folder.path / "old", "engine", {row_with(2)});
  write_report(folder.path / "new", "engine", {row_with(1)});
  const auto [before, after] = read_both(folder.path / "old", folder.path / "new/engine.json");
  BOOST_TEST((compare(before.reports, after.reports, 0.05).at(0).what == verdict::worse));
}

BOOST_AUTO_TEST_CASE(missing_and_malformed_files_are_named) {
  const own_folder folder;
  write_report(folder.path, "good", {row_with(2)});
  folder.write("bad.json", "{");
  const auto fails = [&](const std::string& other, const std::string& why) {
    BOOST_CHECK_EXCEPTION(read_both(folder.path / "good.json", folder.path / other), std::runtime_error,
                          [&](const auto& error) { return has(error.what(), other) && has(error.what(), why); });
  };
  fails("none.json", "there is none");
  fails("bad.json", "is no JSON");
}

BOOST_AUTO_TEST_CASE(different_machines_and_quick_runs_are_told) {
  results_of_folder before;
  results_of_folder after;
  BOOST_TEST(differences_of(before, after) == "");
  before.where =
    machine{.cpu = "A", .cores = 2, .date = "yesterday", .built_with = {"0.1.0", "Release", "Clang 14", "2.11", "0.17", "3.0"}};
  after.where = before.where;
  after.where->date = "today";
  after.where->load = 3;
  BOOST_TEST(differences_of(before, after) == "");
  after.where->cpu = "B";
  after.where->governor = "performance";
  const auto text = differences_of(before, after);
  BOOST_TEST(has(text, "note: processor differs: OLD A, 2 cores; NEW B, 2 cores\n"));
  BOOST_TEST(has(text, "note: clock governor differs: OLD not known; NEW performance\n"));
  before.where->quick = true;
  BOOST_TEST(has(differences_of(before, after), "note: figures of a quick run are rough\n"));
}

BOOST_AUTO_TEST_SUITE_END()
