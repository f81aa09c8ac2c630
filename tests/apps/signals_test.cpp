// SPDX-License-Identifier: BSD-3-Clause
#include "apps/signals.hpp"

#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <thread>

using namespace troupe::apps;
using namespace std::chrono_literals;

namespace {

struct blocked {
  blocked() { block_stop_signals(); }
};

bool is_pending(int number) {
  sigset_t all;
  sigpending(&all);
  return sigismember(&all, number) == 1;
}

}  // namespace

BOOST_GLOBAL_FIXTURE(blocked);

BOOST_AUTO_TEST_CASE(nothing_is_requested_before_a_signal_comes) {
  stop_signal stop;
  BOOST_TEST(!stop.requested());
  BOOST_TEST(stop.number() == 0);
  BOOST_TEST(!stop.wait_for(1ms));
}

BOOST_AUTO_TEST_CASE(wait_returns_the_signal_that_came_and_the_callback_has_its_number) {  // SI-1, SI-2
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    std::promise<int> called;
    std::thread::id where;
    stop_signal stop([&](int n) {
      where = std::this_thread::get_id();
      called.set_value(n);
    });
    kill(getpid(), number);
    BOOST_TEST(stop.wait() == number);
    BOOST_TEST(stop.requested());
    BOOST_TEST(called.get_future().get() == number);
    BOOST_TEST((where != std::this_thread::get_id()));
  }
}

BOOST_AUTO_TEST_CASE(a_signal_from_before_the_object_existed_is_not_lost) {  // SI-2
  kill(getpid(), SIGTERM);
  stop_signal stop;
  BOOST_TEST(stop.wait() == SIGTERM);
  BOOST_TEST(stop.wait() == SIGTERM);
}

BOOST_AUTO_TEST_CASE(a_hangup_that_has_a_function_of_its_own_does_not_stop) {  // SI-4
  std::promise<void> first;
  int hangups = 0;
  stop_signal stop({}, 1h, [&] {
    if (++hangups == 1) first.set_value();
  });
  kill(getpid(), SIGHUP);
  BOOST_TEST((first.get_future().wait_for(10s) == std::future_status::ready));
  BOOST_TEST(!stop.requested());
  kill(getpid(), SIGTERM);
  BOOST_TEST(stop.wait() == SIGTERM);
}

BOOST_AUTO_TEST_CASE(a_hangup_stops_no_process_that_was_started_to_ignore_it) {  // SI-4
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGHUP, SIG_IGN);
    const stop_signal stop;
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGTERM);
    _exit(stop.wait());
  }
  int status = 0;
  BOOST_TEST(waitpid(child, &status, 0) == child);
  BOOST_REQUIRE(WIFEXITED(status));
  BOOST_TEST(WEXITSTATUS(status) == SIGTERM);
}

BOOST_AUTO_TEST_CASE(a_request_from_inside_stops_as_a_signal_does_and_only_once) {  // SI-1
  int calls = 0;
  stop_signal stop([&](int) { ++calls; });
  stop.request();
  stop.request();
  BOOST_TEST(stop.wait() == SIGTERM);
  BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(a_repeated_signal_within_the_patience_changes_nothing) {  // SI-1, SI-3
  int calls = 0;
  {
    stop_signal stop([&](int) { ++calls; }, 1h);
    kill(getpid(), SIGINT);
    BOOST_TEST(stop.wait() == SIGINT);
    kill(getpid(), SIGTERM);
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (is_pending(SIGTERM) && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    BOOST_TEST(!is_pending(SIGTERM));
    BOOST_TEST(stop.number() == SIGINT);
  }
  BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(a_second_signal_ends_a_process_whose_stop_hangs) {  // SI-3
  pid_t child = fork();
  if (child == 0) {
    stop_signal stop({}, 0ms);
    kill(getpid(), SIGINT);
    stop.wait();
    kill(getpid(), SIGINT);
    while (true) pause();
  }
  int status = 0;
  BOOST_TEST(waitpid(child, &status, 0) == child);
  BOOST_REQUIRE(WIFEXITED(status));
  BOOST_TEST(WEXITSTATUS(status) == 128 + SIGINT);
}
