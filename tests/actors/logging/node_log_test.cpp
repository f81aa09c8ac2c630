// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/logging/node_log.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <troupe/actors/logging/log_lines.hpp>
#include <troupe/actors/logging/reopen_logs.hpp>
#include <troupe/messages/errors.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/stderr_in_pipe.hpp"
#include "actors/temporary_folder.hpp"
#include "support/forked_child.hpp"
#include "support/no_more_threads.hpp"
#include "support/thread_count.hpp"

using troupe::severity;
using troupe::logging::line_descriptor;
using troupe::logging::node_log;
using troupe::test::contains;
using troupe::test::read_text;
using troupe::test::stderr_in_pipe;
using troupe::test::temporary_folder;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) result.push_back(line);
  return result;
}

/// A text that counts how often it was made.
struct counted_text {
  int& times;
  std::string operator()() const {
    ++times;
    return "text " + std::to_string(times);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_line_has_time_level_node_and_room) {
  temporary_folder folder;
  {
    const node_log log("worker1", severity::debug, folder / "log");
    log.info("membership", [] { return "peer 'ps' is up: 10.0.0.2:4711, TCP"; });
    log.error("nodes", [] { return std::string("it failed"); });
  }
  const auto lines = lines_of(read_text(folder / "log"));
  BOOST_REQUIRE(lines.size() == 2u);
  const std::string time = R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} )";
  BOOST_TEST(
    std::regex_match(lines[0], std::regex(time + "info  node=worker1 room=membership peer 'ps' is up: 10.0.0.2:4711, TCP")),
    lines[0]);
  BOOST_TEST(std::regex_match(lines[1], std::regex(time + "error node=worker1 room=nodes it failed")), lines[1]);
}

BOOST_AUTO_TEST_CASE(each_line_may_be_an_object_of_json) {  // NL-4
  temporary_folder folder;
  const std::string odd = R"(the name "b" is taken: C:\d)";
  {
    const node_log log("worker1", severity::debug, folder / "log", troupe::line_format::json);
    log.info("membership", [&] { return odd; });
    log.error("nodes", [] { return std::string("two\nlines \x1b[31m \xff"); });
    log.error("nodes", [] { return std::string(5'000, '"'); });
  }
  const auto lines = lines_of(read_text(folder / "log"));
  BOOST_REQUIRE(lines.size() == 3u);
  const auto first = nlohmann::json::parse(lines[0]);
  BOOST_TEST(
    std::regex_match(first.at("time").get<std::string>(), std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d)")),
    lines[0]);
  BOOST_TEST(first.at("level") == "info");
  BOOST_TEST(first.at("node") == "worker1");
  BOOST_TEST(first.at("room") == "membership");
  BOOST_TEST(first.at("text") == odd);
  BOOST_TEST(nlohmann::json::parse(lines[1]).at("text") == R"(two\nlines \x1b[31m \xff)");
  BOOST_TEST(lines[2].size() <= 4096u);
  BOOST_TEST(contains(nlohmann::json::parse(lines[2]).at("text").get<std::string>(), std::string(1'000, '"')));
}

BOOST_AUTO_TEST_CASE(a_log_that_is_opened_again_goes_on_in_a_new_file) {  // LR-1
  temporary_folder folder;
  const std::string file = folder / "log";
  {
    const node_log log("worker1", severity::warn, file);
    const node_log on_stderr("worker2", severity::warn, "");
    const auto say = [&](const std::string& text) { log.warn("nodes", [&] { return text; }); };
    say("first");
    std::filesystem::rename(file, folder / "log.1");
    troupe::logging::reopen_logs();
    say("second");
    std::filesystem::rename(file, folder / "log.2");
    std::filesystem::create_directory(file);
    troupe::logging::reopen_logs();
    say("third");
  }
  troupe::logging::reopen_logs();  // of no log
  const auto first = read_text(folder / "log.1");
  const auto second = read_text(folder / "log.2");
  BOOST_TEST(lines_of(first + second).size() == 4u, first + second);
  // The thread that writes may have written the first line only after the log was opened again.
  for (const auto* text : {" second", " third", "; the log goes on in the old file"})
    BOOST_TEST(contains(second, text), second);
}

BOOST_AUTO_TEST_CASE(a_text_is_made_only_if_its_level_is_on) {  // NL-1
  const std::vector<severity> levels = {severity::debug, severity::info, severity::warn, severity::error, severity::off};
  for (std::size_t least = 0; least < levels.size(); ++least) {
    temporary_folder folder;
    int made = 0;
    {
      const node_log log("n", levels[least], folder / "log");
      const counted_text text{made};
      log.debug("r", text);
      log.info("r", text);
      log.warn("r", text);
      log.error("r", text);
      for (std::size_t i = 0; i < levels.size(); ++i) BOOST_TEST(log.is_on(levels[i]) == (i >= least));
    }
    BOOST_TEST(made == static_cast<int>(4 - least));
    BOOST_TEST(lines_of(read_text(folder / "log")).size() == 4 - least);
  }
}

BOOST_AUTO_TEST_CASE(a_text_of_a_stranger_stays_on_its_line) {  // NL-4
  temporary_folder folder;
  {
    const node_log log("n", severity::info, folder / "log");
    log.info("r", [] { return "name 'a\n2026-11-22 14:36:44.123 error node=b room=c forged'"; });
    log.info("r", [] { return std::string(100'000, 'x'); });
  }
  const auto lines = lines_of(read_text(folder / "log"));
  BOOST_REQUIRE(lines.size() == 2u);
  BOOST_TEST(contains(lines[0], "'a\\n2026"), lines[0]);
  BOOST_TEST(lines[1].size() <= 4096u);
  BOOST_TEST(contains(lines[1], "bytes more)"));
}

BOOST_AUTO_TEST_CASE(two_nodes_of_a_process_have_logs_of_their_own) {
  temporary_folder folder;
  {
    const node_log one("one", severity::info, folder / "one");
    const node_log two("two", severity::warn, folder / "two");
    for (const auto* log : {&one, &two}) log->info("r", [] { return "of both"; });
    two.warn("r", [] { return "of two"; });
  }
  BOOST_TEST(contains(read_text(folder / "one"), "node=one room=r of both"));
  BOOST_TEST(contains(read_text(folder / "two"), "node=two room=r of two"));
  BOOST_TEST(!contains(read_text(folder / "two"), "of both"));
}

BOOST_AUTO_TEST_CASE(a_log_that_says_nothing_has_no_thread) {
  temporary_folder folder;
  const auto before = troupe::test::threads_of();
  const node_log log("n", severity::warn, folder / "log");
  log.info("r", [] { return "off"; });
  BOOST_TEST(troupe::test::threads_of() == before);
  for (int i = 0; i < 3; ++i) log.warn("r", [] { return "on"; });
  const node_log other("o", severity::warn, folder / "log");
  other.warn("r", [] { return "on"; });
  BOOST_TEST(troupe::test::threads_of() == before + 1);
}

BOOST_AUTO_TEST_CASE(a_log_without_a_thread_is_written_by_the_thread_that_logs) {
  temporary_folder folder;
  const node_log log("n", severity::info, folder / "log");
  const troupe::test::no_more_threads none;
  log.info("r", [] { return "written"; });
  BOOST_TEST(contains(read_text(folder / "log"), "written"));
}

BOOST_AUTO_TEST_CASE(a_process_that_was_forked_writes_its_own_lines) {
  temporary_folder folder;
  const node_log log("n", severity::info, folder / "log");
  log.info("r", [] { return "parent"; });
  const auto write_line = [&] {
    const node_log own("child", severity::info, folder / "child");
    own.info("r", [] { return "child"; });
    return 0;
  };
  BOOST_TEST(troupe::test::status_of_child(write_line) == 0);
  BOOST_TEST(contains(read_text(folder / "child"), "node=child room=r child"));
}

BOOST_AUTO_TEST_CASE(of_a_flood_a_part_is_written_and_the_rest_is_counted) {  // NL-3
  temporary_folder folder;
  {
    const node_log log("n", severity::debug, folder / "log");
    for (int i = 0; i < 500; ++i) log.warn("r", [] { return "flood"; });
    log.warn("r", [] { return "another event"; });
    for (int i = 0; i < 200; ++i) log.debug("r", [] { return "wanted"; });
  }
  const auto lines = lines_of(read_text(folder / "log"));
  const auto count = [&](const std::string& text) {
    return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) { return contains(line, text); });
  };
  BOOST_TEST(count("flood") >= 100);
  BOOST_TEST(count("flood") < 200);  // on a slow machine the limit admits some more lines
  BOOST_TEST(count("like") >= 1);
  BOOST_TEST(count("another event") == 1);
  BOOST_TEST(count("wanted") == 200);
}

BOOST_AUTO_TEST_CASE(lines_that_were_left_out_are_counted_when_the_event_comes_again) {  // NL-3
  temporary_folder folder;
  const node_log log("n", severity::info, folder / "log");
  const auto happens = [&] {
    log.info("r", [] { return "flood"; });
    return contains(read_text(folder / "log"), " like the next one were left out\n");
  };
  BOOST_TEST(troupe::test::becomes_true(happens));  // after a second the limit admits one more line
}

BOOST_AUTO_TEST_CASE(a_pipe_that_nobody_reads_stops_nobody) {  // NL-2, NL-5
  stderr_in_pipe pipe;
  pipe.fill();
  std::optional<node_log> log(std::in_place, "n", severity::debug, "");
  for (std::size_t i = 0; i < 3 * node_log::most_waiting; ++i) log->debug("r", [] { return "lost"; });
  log.reset();  // has to return, though nobody reads
  BOOST_TEST(!contains(pipe.read(), "lost"));
}

BOOST_AUTO_TEST_CASE(a_pipe_without_a_reader_ends_nobody) {  // NL-2
  stderr_in_pipe pipe;
  pipe.close_reader();
  const node_log log("n", severity::debug, "");
  for (int i = 0; i < 10; ++i) log.debug("r", [] { return "lost"; });
}

BOOST_AUTO_TEST_CASE(lines_that_nobody_read_are_counted_once_somebody_reads) {  // NL-2
  stderr_in_pipe pipe;
  const node_log log("n", severity::debug, "");
  std::string text;
  const auto lose_some_and_read = [&] {
    pipe.fill();
    log.debug("r", [] { return "lost"; });
    troupe::test::becomes_true([] { return false; }, 2 * line_descriptor::patience);  // until the log has given up on the line
    pipe.read();
    log.debug("r", [] { return "seen"; });
    troupe::test::becomes_true([&] { return contains(text += pipe.read(), "seen"); });
    return contains(text, "warn  node=n room=logging 1 line before this one could not be written\n");
  };
  BOOST_TEST(troupe::test::becomes_true(lose_some_and_read));
}

BOOST_AUTO_TEST_CASE(a_log_file_that_cannot_be_written_is_refused_unless_nothing_is_logged) {
  temporary_folder folder;
  BOOST_CHECK_THROW(node_log("n", severity::warn, folder / "missing/log"), troupe::error);
  BOOST_CHECK_NO_THROW(node_log("n", severity::off, folder / "missing/log"));
}
