// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "apps/charlm/advice.hpp"
#include "apps/charlm/chart.hpp"
#include "apps/charlm/figures.hpp"
#include "apps/charlm/metrics.hpp"
#include "apps/charlm/progress.hpp"
#include "apps/charlm/run_folder.hpp"
#include "apps/charlm/run_state.hpp"
#include "apps/charlm/summary.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using namespace troupe::apps::test;

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

BOOST_AUTO_TEST_SUITE(chart_of_losses)

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

BOOST_AUTO_TEST_SUITE(progress_of_a_run)

namespace {

const progress_report half{
  .step = 120, .fraction = 0.5, .loss = 2.1304, .validation_loss = 2.01, .tokens_per_second = 24512.4, .seconds_left = 64.2};

}  // namespace

BOOST_AUTO_TEST_CASE(a_line_has_step_loss_speed_and_time_left) {
  BOOST_TEST(progress::line_of(half, 0, false) == "step 120  loss 2.130  validation 2.010  24,512 tokens/s  1:05 left");
}

BOOST_AUTO_TEST_CASE(a_terminals_line_never_wraps) {  // PR-1
  for (std::size_t columns = 20; columns < 160; ++columns) BOOST_TEST(progress::line_of(half, columns, true).size() < columns);
  BOOST_TEST(progress::line_of(half, 120, true).find("50% [####") == 0u);
}

BOOST_AUTO_TEST_CASE(a_message_on_a_terminal_stands_above_the_line) {  // PR-1
  std::ostringstream out;
  progress shown{out, true, 100};
  shown.report(half);
  shown.message("saved");
  const auto line = progress::line_of(half, 100, true);
  BOOST_TEST(out.str() == "\r" + line + "\x1b[K" + "\rsaved\x1b[K\n" + line);
}

BOOST_AUTO_TEST_CASE(elsewhere_lines_are_plain_and_rare) {  // PR-2
  std::ostringstream out;
  progress shown{out, false, 80, std::chrono::hours{1}};
  for (int i = 0; i < 100; ++i) shown.report(half);
  shown.message("saved");
  shown.finish();
  BOOST_TEST(out.str() == progress::line_of(half, 0, false) + "\nsaved\n");
}

BOOST_AUTO_TEST_CASE(times_and_numbers_read_well) {
  BOOST_TEST(clock_text(3.2) == "0:04");
  BOOST_TEST(clock_text(3725) == "1:02:05");
  BOOST_TEST(clock_text(-5) == "0:00");
  BOOST_TEST(grouped(999) == "999");
  BOOST_TEST(grouped(1234567) == "1,234,567");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(files_of_a_run)

BOOST_AUTO_TEST_CASE(metrics_are_a_json_object_a_line) {  // MX-1
  const temporary_folder folder;
  const auto path = folder.path() / "metrics.jsonl";
  metrics kept{path, -1};
  kept.add({1, 4.5, 1e-3, 2.5, 24000, 0.1});
  kept.add_validation(1, 4.4, 0.2);
  std::istringstream lines(content_of(path));
  std::string line;
  std::getline(lines, line);
  BOOST_TEST(nlohmann::json::parse(line)["loss"] == 4.5);
  std::getline(lines, line);
  BOOST_TEST(nlohmann::json::parse(line)["validation_loss"] == 4.4);
}

BOOST_AUTO_TEST_CASE(a_run_that_continues_drops_later_steps) {  // MX-2
  const temporary_folder folder;
  const auto path = folder.path() / "metrics.jsonl";
  {
    metrics kept{path, -1};
    for (int step = 1; step <= 10; ++step) kept.add({step, 1.0 / step, 0, 0, 0, 0});
    kept.add_validation(5, 3, 0);
    kept.add_validation(10, 2, 0);
  }
  metrics again{path, 6};
  BOOST_TEST(again.losses().size() == 6u);
  BOOST_TEST(again.validation_losses().size() == 1u);
  again.add({7, 1, 0, 0, 0, 0});
  const auto content = content_of(path);
  BOOST_TEST(std::count(content.begin(), content.end(), '\n') == 8);
}

BOOST_AUTO_TEST_CASE(a_line_for_which_there_is_no_room_leaves_the_file_as_it_was) {  // MX-1, MX-3
  const temporary_folder folder;
  const auto path = folder.path() / "metrics.jsonl";
  metrics kept{path, -1};
  kept.add({1, 4.5, 1e-3, 2.5, 24000, 0.1});
  const auto before = content_of(path);
  signal(SIGXFSZ, SIG_IGN);
  rlimit unlimited{};
  getrlimit(RLIMIT_FSIZE, &unlimited);
  const rlimit tight{before.size() + 20, unlimited.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  BOOST_CHECK_EXCEPTION(kept.add({2, 4.5, 1e-3, 2.5, 24000, 0.1}), std::runtime_error,
                        says({"metrics.jsonl", "free some space"}));
  setrlimit(RLIMIT_FSIZE, &unlimited);
  BOOST_TEST(content_of(path) == before);
  kept.add({2, 4.5, 1e-3, 2.5, 24000, 0.1});
  BOOST_TEST(metrics(path, 2).losses().size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_named_with_the_file) {  // MX-3, RF-3
  BOOST_CHECK_EXCEPTION(run_folder(std::filesystem::path("/dev/full")), std::runtime_error, says({"/dev/full", "--out"}));
  const temporary_folder folder;
  const run_folder here{folder.path() / "run"};
  BOOST_CHECK_EXCEPTION(here.expect_room(std::uintmax_t{1} << 60), std::runtime_error, says({"run", "no space left", "--out"}));
  BOOST_CHECK_NO_THROW(here.expect_room(1));
}

BOOST_AUTO_TEST_CASE(a_folder_has_one_run_at_a_time) {  // RF-1
  const temporary_folder folder;
  {
    const run_folder first{folder.path() / "run"};
    BOOST_CHECK_EXCEPTION(run_folder{folder.path() / "run"}, std::runtime_error, says({"another run", "--out"}));
  }
  BOOST_CHECK_NO_THROW(run_folder{folder.path() / "run"});
}

BOOST_AUTO_TEST_CASE(an_earlier_run_is_set_aside_and_other_files_stay) {  // RF-2
  const temporary_folder folder;
  folder.write("notes.txt", "mine");
  run_folder here{folder.path()};
  BOOST_TEST(!here.set_aside().has_value());
  const auto write_checkpoint = [&] {
    std::filesystem::create_directory(folder.path() / "checkpoint");
    folder.write("checkpoint/checkpoint.json", "{}");
  };
  write_checkpoint();
  folder.write("summary.json", "first");
  BOOST_TEST(here.set_aside().value().where == folder.path() / "previous");
  write_checkpoint();
  folder.write("metrics.jsonl", "second");
  BOOST_TEST(here.set_aside().value().replaced);
  BOOST_TEST(content_of(folder.path() / "notes.txt") == "mine");
  BOOST_TEST(content_of(folder.path() / "previous" / "metrics.jsonl") == "second");
  BOOST_TEST(!std::filesystem::exists(folder.path() / "previous" / "summary.json"));
  BOOST_TEST(!std::filesystem::exists(folder.path() / "metrics.jsonl"));
}

BOOST_AUTO_TEST_CASE(a_run_without_a_checkpoint_costs_no_run_that_has_one) {  // RF-2
  const temporary_folder folder;
  run_folder here{folder.path()};
  std::filesystem::create_directory(folder.path() / "checkpoint");
  folder.write("checkpoint/checkpoint.json", "good");
  BOOST_TEST(!here.set_aside().value().replaced);
  for (const char* failed : {"third", "fourth"}) {
    folder.write("metrics.jsonl", failed);
    BOOST_TEST(here.set_aside().value().where == folder.path() / "unfinished");
    BOOST_TEST(content_of(folder.path() / "unfinished" / "metrics.jsonl") == failed);
  }
  BOOST_TEST(content_of(folder.path() / "previous" / "checkpoint" / "checkpoint.json") == "good");
}

BOOST_AUTO_TEST_CASE(a_run_that_is_abandoned_leaves_only_whole_files) {
  const temporary_folder folder;
  const run_folder here{folder.path()};
  std::filesystem::create_directory(folder.path() / "checkpoint");
  const std::vector<std::string> whole{"metrics.jsonl", "checkpoint/stage1.0123.pt"};
  const std::vector<std::string> others{"loss.svg.part", "checkpoint/stage2.0123.pt.part"};
  for (const auto& names : {whole, others})
    for (const auto& name : names) folder.write(name, "something");
  here.abandon();
  for (const auto& name : whole) BOOST_TEST(std::filesystem::exists(folder.path() / name), name);
  for (const auto& name : others) BOOST_TEST(!std::filesystem::exists(folder.path() / name), name);
  BOOST_TEST(!std::filesystem::exists(folder.path() / ".lock"));
}

BOOST_AUTO_TEST_CASE(a_command_can_be_copied_to_a_shell) {  // AD-1
  BOOST_TEST(shell_word("out/charlm") == "out/charlm");
  BOOST_TEST(shell_word("my runs/it's") == R"('my runs/it'\''s')");
  BOOST_TEST(shell_word("") == "''");
  BOOST_TEST(shell_word("a$b") == "'a$b'");
  train_options options;
  options.out = "my runs/1";
  const auto program = shell_word(program_invocation_name);
  BOOST_TEST(continue_command(options) == program + " train --resume --out 'my runs/1'");
  options.cluster = "two.json";
  options.verify_steps = 0;
  BOOST_TEST(continue_command(options) == program + " train --resume --out 'my runs/1' --cluster two.json --verify-steps 0");
  BOOST_TEST(generate_command(options) == program + " generate --out 'my runs/1'");
}

BOOST_AUTO_TEST_CASE(a_state_comes_back_from_its_attributes) {
  run_state state;
  state.shape.vocabulary = 86;
  state.how.learning_rate = 1.0 / 3;
  state.characters = "\n\xE2\x82\xAC";
  state.step = 12;
  state.seconds = 1.5;
  state.planned_seconds = 6;
  state.nodes = "stage1,stage2";
  const auto again = run_state::from_attributes(state.to_attributes(), "here");
  BOOST_TEST((again.to_attributes() == state.to_attributes()));
  BOOST_TEST(again.fraction() == 0.25);
  BOOST_CHECK_EXCEPTION(run_state::from_attributes({}, "here"), std::runtime_error, says({"here", "another program"}));
}

BOOST_AUTO_TEST_CASE(a_summary_has_what_is_promised) {
  run_summary summary;
  summary.validation_loss = 1.4;
  summary.verified_steps = 3;
  const auto fields = nlohmann::json::parse(summary.to_json(run_state{}));
  for (const char* name : {"validation_loss", "trigram_loss", "tokens_per_second", "single_process_tokens_per_second",
                           "gradients_verified", "seconds"})
    BOOST_TEST(fields.contains(name), name);
  BOOST_TEST(fields["gradients_verified"] == true);
}

BOOST_AUTO_TEST_CASE(a_summary_names_the_files_that_were_written) {
  const auto lines =
    run_summary{}.lines(run_state{}, "some\ntext", {"out/a", {"summary.json", "checkpoint/"}, "troupe generate --out out/a"});
  const auto has = [&](const std::string& line) { return std::find(lines.begin(), lines.end(), line) != lines.end(); };
  for (const char* line : {"  | some", "  | text", "files            out/a/: summary.json, checkpoint/",
                           "more text        troupe generate --out out/a"})
    BOOST_TEST(has(line), line);
}

BOOST_AUTO_TEST_SUITE_END()
