// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

#include "bench/report/report_page.hpp"
#include "bench/report/results.hpp"
#include "bench/report/row_texts.hpp"
#include "../support/own_folder.hpp"

using namespace troupe::bench;
using troupe::test::has;
using troupe::test::own_folder;

namespace {

plot plot_in(const std::string& group, const std::string& title) {
  return {.group = group,
          .name = "n",
          .title = title,
          .how_to_read = "Lower is better.",
          .x = {"nodes", "", false},
          .y = {"time", "us", false},
          .curves = {{"troupe", role::troupe, {{1, 2}, {2, 3}}}}};
}

results_of_folder some_results() {
  results_of_folder found;
  found.reports = {
    {"engine", "today", {{"chain_1000", "ns/function", {2000, 100, 40}, 20, 10, false, "a <note>", {.troupe = {98, 105}}}}},
    {"hosts", "today", {{"idle_100", "% of a core", {0, 0.5, 0}, 0.5, 0.3, true}}}};
  found.reports[0].rows[0].peer_name = "libtorch";
  found.plots = {plot_in("zoo", "Animals"), plot_in("scheduling", "Policies"), plot_in("messages", "Sizes"),
                 plot_in("zoo", "Cages")};
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(page_of_figures)

BOOST_AUTO_TEST_CASE(a_folder_is_read_as_a_whole) {
  const own_folder folder;
  const std::string names = "hdagbfce";
  for (const char name : names) write_report(folder.path, {name}, {{std::string("row_") + name, "us", {2, 1, 0}, 2, 1}});
  write_curves(folder.path, "a", {plot_in("messages", "T")});
  write_machine(folder.path, {.cpu = "Some CPU"});
  folder.write("notes.txt", "no figures");
  folder.write("scale.tables.json", "{}");
  const auto found = read_results(folder.path);
  std::string in_order;
  for (const auto& each : found.reports) in_order += each.name;
  BOOST_TEST(in_order == "abcdefgh");
  BOOST_TEST(found.reports.at(1).rows.at(0).name == "row_b");
  BOOST_TEST(has(found.reports[0].date, " UTC"));
  BOOST_TEST(found.plots.size() == 1);
  BOOST_REQUIRE(found.where.has_value());
  BOOST_TEST(found.where->cpu == "Some CPU");
}

BOOST_AUTO_TEST_CASE(a_folder_without_figures_or_with_a_malformed_file_is_refused) {
  const own_folder folder;
  const auto fails = [&](const std::string& name, const std::string& why) {
    BOOST_CHECK_EXCEPTION(read_results(folder.path / name), std::runtime_error,
                          [&](const auto& error) { return has(error.what(), why); });
  };
  fails("none", "there is no folder '");
  fails("", "has no figures");
  write_report(folder.path, "a", {{"one", "us", {2, 1, 0}, 2, 1}});
  folder.write("b.json", "{}");
  fails("", "b.json' is no report");
}

BOOST_AUTO_TEST_CASE(the_table_of_the_terminal_has_all_reports) {
  const auto text = ratios_as_text(some_results().reports);
  BOOST_TEST(has(text, "engine\n  chain_1000"));
  BOOST_TEST(has(text, "hosts\n  idle_100"));
  BOOST_TEST(has(text, ">= 10       ok\n"));
  BOOST_TEST(has(text, "<= 0.3      short\n"));
  BOOST_TEST(has(text, "\n1 of 2 figures reach their bars\n"));
}

BOOST_AUTO_TEST_CASE(the_page_shows_rows_with_their_spread_and_names_those_that_are_short) {
  const auto page = page_of(some_results());
  BOOST_TEST(has(page, "<code>chain_1000</code><small>A pass over a chain of 1,000 functions without work.</small>"));
  BOOST_TEST(has(page, "a &lt;note&gt;"));
  BOOST_TEST(has(page, "100<small>98.0 – 105</small>"));
  BOOST_TEST(has(page, "peer: libtorch; "));
  BOOST_TEST(has(page, "1 of 2 figures reach their bars. Short: <code>idle_100</code>."));
  BOOST_TEST(has(page, "≥ 10</td><td class=\"ok\">"));
  BOOST_TEST(has(page, "≤ 0.3</td><td class=\"short\">"));
}

BOOST_AUTO_TEST_CASE(groups_have_a_fixed_order_and_others_follow) {
  const auto page = page_of(some_results());
  const auto messages = page.find(">Messages</h2>");
  const auto scheduling = page.find(">Scheduling</h2>");
  const auto zoo = page.find(">Zoo</h2>");
  BOOST_TEST(messages < scheduling);
  BOOST_TEST(scheduling < zoo);
  BOOST_TEST(zoo < page.find("<h3>Animals</h3>"));
  BOOST_TEST(zoo < page.find("<h3>Cages</h3>"));
  BOOST_TEST(zoo != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_page_asks_for_nothing_from_elsewhere) {
  const auto page = page_of(some_results());
  for (const auto* each : {"http", "<script", "<link", "@import", "url(", "src="}) BOOST_TEST(!has(page, each), each);
}

BOOST_AUTO_TEST_CASE(the_machine_is_shown_and_a_quick_run_is_marked) {
  auto found = some_results();
  BOOST_TEST(has(page_of(found), "The machine was not recorded"));
  found.where = machine{.cpu = "Some <CPU>"};
  BOOST_TEST(has(page_of(found), "Some &lt;CPU&gt;"));
  BOOST_TEST(!has(page_of(found), "quick run"));
  found.where->quick = true;
  BOOST_TEST(has(page_of(found), "Figures of a quick run are rough"));
}

BOOST_AUTO_TEST_CASE(each_row_of_the_benchmarks_has_a_sentence) {
  std::ifstream in(TROUPE_SOURCE_DIR "/bench/CMakeLists.txt");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::set<std::string> names;
  const std::regex list(R"re(string\(JOIN " " \w+_rows([^)]*)\)|-DROWS=([a-z][^"$]*)")re");
  for (std::sregex_iterator each(text.begin(), text.end(), list), end; each != end; ++each) {
    std::istringstream words((*each)[1].str() + (*each)[2].str());
    for (std::string word; words >> word;) names.insert(word);
  }
  BOOST_TEST(names.count("chain_1000") == 1);
  BOOST_TEST(names.count("hostile_inputs") == 1);
  for (const auto& each : names) BOOST_TEST(text_of_row(each) != "", each);
  BOOST_TEST(text_of_row("no_such_row") == "");
}

BOOST_AUTO_TEST_SUITE_END()
