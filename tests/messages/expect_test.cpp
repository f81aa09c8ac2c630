// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/expect.hpp>

#include <boost/test/unit_test.hpp>

#include <csignal>
#include <cstdio>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "support/contains.hpp"

using troupe::test::contains;

namespace {

/// What a process writes to stderr that finds the number to be another one, and the signal that ends it; 0: none.
std::pair<std::string, int> of_process_that_expects_three(int number) {
  int ends[2];
  BOOST_REQUIRE(::pipe(ends) == 0);
  const auto child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    std::signal(SIGABRT, SIG_DFL);
    TROUPE_EXPECT(number == 3);
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  for (char byte = 0; ::read(ends[0], &byte, 1) == 1;) text += byte;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return {text, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_broken_condition_ends_the_process_and_says_which_and_where) {
  const auto [text, signal] = of_process_that_expects_three(2);
  BOOST_TEST(signal == SIGABRT);
  BOOST_TEST(contains(text, "troupe: a fault of the program: expected number == 3, at messages/expect_test.cpp:"), text);
  BOOST_TEST(contains(text, "of_process_that_expects_three"), text);
}

BOOST_AUTO_TEST_CASE(a_condition_that_holds_says_nothing) {
  const auto [text, signal] = of_process_that_expects_three(3);
  BOOST_TEST(signal == 0);
  BOOST_TEST(text.empty(), text);
}
