// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/stop_limit.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <troupe/messages/errors.hpp>

#include "support/contains.hpp"
#include "support/environment_variable.hpp"
#include "support/no_more_threads.hpp"

using namespace std::chrono_literals;
using namespace troupe::support;
using namespace troupe::test;

namespace {

constexpr auto variable = "TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT";

std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }

}  // namespace

BOOST_AUTO_TEST_SUITE(the_limit_of_a_stop)

BOOST_AUTO_TEST_CASE(is_ten_seconds_or_what_the_environment_says) {
  {
    const environment_variable none(variable, nullptr);
    BOOST_TEST((stop_limit_of_environment() == 10s));
  }
  for (const auto& [text, expected] : {std::pair{"0", 0ms}, {"0.25", 250ms}, {"7", 7000ms}, {"86400", 86'400'000ms}}) {
    const environment_variable given(variable, text);
    BOOST_TEST((stop_limit_of_environment() == expected));
  }
}

BOOST_DATA_TEST_CASE(that_is_no_number_of_seconds_is_refused, (std::vector<std::string>{"", "-1", "ten", "5s", "nan", "86401"}),
                     text) {
  const environment_variable given(variable, text.c_str());
  BOOST_CHECK_EXCEPTION(stop_limit_of_environment(), troupe::error, [&](const troupe::error& why) {
    return why.code() == troupe::errc::misuse && why.what() == std::string("the environment variable ") + variable +
                                                                 ": expected a number of seconds from 0 to 86400, got '" +
                                                                 text + "'";
  });
}

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
