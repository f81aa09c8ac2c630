// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/ends_by.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include "support/no_more_threads.hpp"

using namespace std::chrono_literals;
using namespace troupe::support;
using namespace troupe::test;

namespace {

std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }

}  // namespace

BOOST_AUTO_TEST_SUITE(the_limit_of_an_end)

BOOST_AUTO_TEST_CASE(lets_work_go_on_that_takes_longer) {
  std::promise<void> go_on;
  std::promise<std::thread::id> destroyed;
  std::shared_ptr<void> owned(nullptr, [&](void*) { destroyed.set_value(std::this_thread::get_id()); });
  std::thread::id of_work;
  std::function<void()> work = [&, owned = std::move(owned)] {
    of_work = std::this_thread::get_id();
    go_on.get_future().wait();
  };
  BOOST_TEST(!ends_by(now() + 1ms, std::move(work)));
  go_on.set_value();
  const auto where = destroyed.get_future().get();
  BOOST_TEST((where == of_work));
  BOOST_TEST((where != std::this_thread::get_id()));
}

BOOST_AUTO_TEST_CASE(is_not_used_up_by_work_that_ends) {
  bool is_over = false;
  BOOST_TEST(ends_by(now() + 1h, [&] { is_over = true; }));
  BOOST_TEST(is_over);
}

BOOST_AUTO_TEST_CASE(does_not_hold_without_a_thread) {
  const no_more_threads none_left;
  std::thread::id of_work;
  BOOST_TEST(ends_by(now(), [&] { of_work = std::this_thread::get_id(); }));
  BOOST_TEST((of_work == std::this_thread::get_id()));
}

BOOST_AUTO_TEST_SUITE_END()
