// SPDX-License-Identifier: BSD-3-Clause
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <c10/util/Exception.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/warning_relay.hpp>

#include "engine/both_ways.hpp"

using troupe::engine::warning_relay;

BOOST_AUTO_TEST_SUITE(warning_relays)

namespace {

void warn_elsewhere(warning_relay& relay, const std::string& text) {
  std::thread([&] {
    const c10::WarningUtils::WarningHandlerGuard guard(&relay);
    TORCH_WARN(text);
  }).join();
}

struct throwing_handler final : c10::WarningHandler {
  void process(const c10::Warning&) override { throw std::runtime_error("of the handler"); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(hold_warnings_of_other_threads_back_and_replay_each_once_in_order) {
  troupe::test::collected_warnings here;
  warning_relay relay;
  warn_elsewhere(relay, "one");
  warn_elsewhere(relay, "two");
  BOOST_TEST(here.texts.empty());
  relay.replay();
  BOOST_TEST(here.texts == (std::vector<std::string>{"one", "two"}), boost::test_tools::per_element());
  relay.replay();
  BOOST_TEST(here.texts.size() == 2u);
}

BOOST_AUTO_TEST_CASE(throw_the_failure_after_the_warnings) {
  troupe::test::collected_warnings here;
  warning_relay relay;
  warn_elsewhere(relay, "one");
  BOOST_CHECK_THROW(relay.replay_and_rethrow(std::make_exception_ptr(std::logic_error("of the work"))), std::logic_error);
  BOOST_TEST(here.texts.size() == 1u);
  BOOST_CHECK_NO_THROW(relay.replay_and_rethrow(nullptr));
}

BOOST_AUTO_TEST_CASE(throw_the_failure_of_the_work_rather_than_that_of_the_handler) {
  throwing_handler handler;
  const c10::WarningUtils::WarningHandlerGuard guard(&handler);
  warning_relay relay;
  warn_elsewhere(relay, "one");
  BOOST_CHECK_THROW(relay.replay_and_rethrow(std::make_exception_ptr(std::logic_error("of the work"))), std::logic_error);
  warn_elsewhere(relay, "two");
  BOOST_CHECK_THROW(relay.replay_and_rethrow(nullptr), std::runtime_error);
}

BOOST_AUTO_TEST_SUITE_END()
