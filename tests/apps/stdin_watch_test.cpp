// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <chrono>
#include <future>

#include "apps/stdin_watch.hpp"

using namespace std::chrono_literals;
using troupe::apps::stdin_watch;

namespace {

/// A pipe in the place of stdin.
struct stdin_in_pipe {
  stdin_in_pipe() { ::dup2(pipe.read.get(), STDIN_FILENO); }
  ~stdin_in_pipe() { ::dup2(before.get(), STDIN_FILENO); }

  troupe::support::owned_descriptor before{::dup(STDIN_FILENO)};
  troupe::support::pipe_ends pipe = troupe::support::make_pipe();
  std::promise<void> told;
  std::future<void> silent = told.get_future();
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(watch_of_stdin, stdin_in_pipe)

BOOST_AUTO_TEST_CASE(the_end_of_stdin_is_told_at_once) {  // QS-1
  const stdin_watch watch(1h, [this] { told.set_value(); });
  BOOST_TEST(::write(pipe.write.get(), "\n", 1) == 1);
  BOOST_TEST((silent.wait_for(0s) == std::future_status::timeout));
  pipe.write = {};
  pipe.read = {};
  BOOST_TEST((silent.wait_for(20s) == std::future_status::ready));
}

BOOST_AUTO_TEST_CASE(silence_is_told_after_the_patience) {  // QS-1
  const auto begin = std::chrono::steady_clock::now();
  const stdin_watch watch(200ms, [this] { told.set_value(); });
  BOOST_TEST((silent.wait_for(20s) == std::future_status::ready));
  BOOST_TEST((std::chrono::steady_clock::now() - begin >= 200ms));
}

BOOST_AUTO_TEST_CASE(a_watch_ends_without_news) {
  const stdin_watch watch(1h, [this] { told.set_value(); });
}

BOOST_AUTO_TEST_SUITE_END()
