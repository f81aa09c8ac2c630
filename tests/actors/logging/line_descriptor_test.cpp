// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/logging/log_lines.hpp>

#include <fcntl.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <troupe/messages/errors.hpp>

#include "actors/stderr_in_pipe.hpp"
#include "actors/temporary_folder.hpp"

using troupe::logging::line_descriptor;
using troupe::test::contains;
using troupe::test::read_text;
using troupe::test::stderr_in_pipe;
using troupe::test::temporary_folder;

BOOST_AUTO_TEST_CASE(lines_go_to_stderr_in_order) {
  stderr_in_pipe pipe;
  auto to = line_descriptor::standard_error();
  BOOST_TEST(to.write("one\n"));
  BOOST_TEST(to.write("two\n"));
  BOOST_TEST(pipe.read() == "one\ntwo\n");
}

BOOST_AUTO_TEST_CASE(a_pipe_that_nobody_reads_holds_up_one_line_only) {  // WL-1
  stderr_in_pipe pipe;
  auto to = line_descriptor::standard_error();
  pipe.fill();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) BOOST_REQUIRE(!to.write("lost\n"));
  BOOST_TEST((std::chrono::steady_clock::now() - begin >= line_descriptor::patience));
  BOOST_TEST((std::chrono::steady_clock::now() - begin < 100 * line_descriptor::patience));
  BOOST_TEST(to.lost() == 1000u);
  pipe.read();
  BOOST_TEST(to.write("seen\n"));
  BOOST_TEST(to.lost() == 0u);
  BOOST_TEST(pipe.read() == "seen\n");
}

BOOST_AUTO_TEST_CASE(a_pipe_that_cannot_be_opened_again_holds_up_one_line_only) {  // WL-1
  stderr_in_pipe pipe;
  auto to = line_descriptor::standard_error("/nonexistent");
  pipe.fill();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) BOOST_REQUIRE(!to.write("lost\n"));
  BOOST_TEST((std::chrono::steady_clock::now() - begin < 100 * line_descriptor::patience));
  pipe.read();
  BOOST_TEST(to.write(std::string(4095, 'x') + "\n"));
  BOOST_TEST(pipe.read().size() == 4096u);
  BOOST_TEST((::fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK) == 0);
}

BOOST_AUTO_TEST_CASE(stderr_blocks_for_others_as_before) {  // WL-3
  stderr_in_pipe pipe;
  auto to = line_descriptor::standard_error();
  BOOST_TEST(to.write("line\n"));
  BOOST_TEST((::fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK) == 0);
}

BOOST_AUTO_TEST_CASE(a_file_is_appended_to) {
  temporary_folder folder;
  const auto path = folder / "log";
  BOOST_TEST(line_descriptor::append_to(path).write("one\n"));
  BOOST_TEST(line_descriptor::append_to(path).write("two\n"));
  BOOST_TEST(read_text(folder / "log") == "one\ntwo\n");
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_written_is_refused_by_name) {
  temporary_folder folder;
  for (const std::string& path : {folder / "missing/log", folder / "."}) {
    const auto names_it = [&](const troupe::error& problem) {
      return problem.code() == troupe::errc::misuse &&
             contains(problem.what(), "the log file '" + path + "' can't be written: ");
    };
    BOOST_CHECK_EXCEPTION(line_descriptor::append_to(path), troupe::error, names_it);
  }
}

BOOST_AUTO_TEST_CASE(lines_of_two_writers_of_a_file_do_not_mix) {  // WL-2
  temporary_folder folder;
  const auto path = folder / "log";
  const auto write = [&](char letter) {
    auto to = line_descriptor::append_to(path);
    for (int i = 0; i < 1000; ++i) to.write(std::string(4095, letter) + "\n");
  };
  std::thread other([&] { write('b'); });
  write('a');
  other.join();
  const auto text = read_text(folder / "log");
  BOOST_TEST(text.size() == 2000u * 4096);
  for (std::size_t begin = 0; begin + 4096 <= text.size(); begin += 4096) {
    const auto line = text.substr(begin, 4096);
    BOOST_REQUIRE(line == std::string(4095, line.front()) + "\n");
  }
}
