// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/expect.hpp>

#include <boost/test/unit_test.hpp>

#include <csignal>
#include <string>

#include <ATen/ATen.h>

#include <troupe/messages/tensors_over_storages.hpp>

#include "support/contains.hpp"
#include "support/stderr_of_process.hpp"

using troupe::test::contains;
using troupe::test::stderr_of_process;

namespace {

void expect_three(int number) { TROUPE_EXPECT(number == 3); }

}  // namespace

BOOST_AUTO_TEST_CASE(a_broken_condition_ends_the_process_and_says_which_and_where) {
  const auto [text, signal] = stderr_of_process([] { expect_three(2); });
  BOOST_TEST(signal == SIGABRT);
  BOOST_TEST(contains(text, "troupe: a fault of the program: expected number == 3, at messages/expect_test.cpp:"), text);
  BOOST_TEST(contains(text, "expect_three"), text);
}

BOOST_AUTO_TEST_CASE(a_condition_that_holds_says_nothing) {
  const auto [text, signal] = stderr_of_process([] { expect_three(3); });
  BOOST_TEST(signal == 0);
  BOOST_TEST(text.empty(), text);
}

BOOST_AUTO_TEST_CASE(memory_that_is_not_troupes_has_no_twin) {
  float elsewhere[4] = {};
  const auto tensor = at::from_blob(elsewhere, {4}, [](void*) {});
  const auto [text, signal] = stderr_of_process([&] { troupe::twin_of(tensor.storage()); });
  BOOST_TEST(signal == SIGABRT);
  BOOST_TEST(contains(text, "expected twin, at messages/tensors_over_storages.hpp:"), text);
}
