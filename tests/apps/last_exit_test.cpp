// SPDX-License-Identifier: BSD-3-Clause
#include "apps/signals.hpp"

#include <boost/test/unit_test.hpp>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <future>

#include "support/forked_child.hpp"

using namespace troupe::apps;
using namespace std::chrono_literals;
using troupe::test::status_of_child;

namespace {

constexpr int stopped = 128 + SIGTERM;

}  // namespace

BOOST_AUTO_TEST_CASE(a_program_that_is_still_there_after_its_patience_leaves_with_the_signals_number) {  // LE-1
  std::array<int, 2> ends{};
  BOOST_REQUIRE(pipe(ends.data()) == 0);
  const int status = status_of_child([&] {
    stop_signal stop;
    const last_exit bounded(stop, 10ms, [&] { [[maybe_unused]] const auto written = write(ends[1], "left", 4); });
    stop.request();
    poll(nullptr, 0, 20'000);  // the process ends during this call
    return 1;
  });
  BOOST_TEST(status == stopped);
  pollfd written{ends[0], POLLIN, 0};
  BOOST_TEST(poll(&written, 1, 0) == 1);
  close(ends[0]);
  close(ends[1]);
}

BOOST_AUTO_TEST_CASE(a_program_has_the_patience_that_was_set_last) {  // LE-1
  const int status = status_of_child([] {
    stop_signal stop;
    last_exit bounded(stop, 1h, [] {});
    stop.request();
    bounded.set_patience(10ms);
    poll(nullptr, 0, 20'000);
    return 1;
  });
  BOOST_TEST(status == stopped);
}

BOOST_AUTO_TEST_CASE(a_program_that_ends_in_time_keeps_its_own_status) {
  const int status = status_of_child([] {
    std::atomic<int> left{0};
    stop_signal stop;
    {
      last_exit bounded(stop, 1h, [&] { ++left; });
      stop.request();
    }
    return left == 0 ? 7 : 8;
  });
  BOOST_TEST(status == 7);
}

BOOST_AUTO_TEST_CASE(nothing_runs_beside_the_end_of_a_process_that_leaves) {  // LE-2
  const int status = status_of_child([] {
    std::promise<void> leaving;
    stop_signal stop;
    last_exit bounded(stop, 0ms, [&] {
      leaving.set_value();
      poll(nullptr, 0, 200);  // time for disarm() to return
    });
    stop.request();
    leaving.get_future().wait();
    bounded.disarm();
    _exit(1);  // the process's end, beside `leave`
    return 0;
  });
  BOOST_TEST(status == stopped);
}
