// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <troupe/engine/cpu_workers.hpp>

#include "engine/threads.hpp"

using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(workers)

BOOST_AUTO_TEST_CASE(measure_their_grain) {
  threads workers(1);
  BOOST_TEST(workers.grain() == 0);
  workers.measure_grain();
  BOOST_TEST(workers.grain() >= 10'000);
  BOOST_TEST(workers.grain() <= 30'000);
}

BOOST_AUTO_TEST_CASE(say_how_many_they_are_and_whether_the_last_pass_had_large_functions) {
  threads workers(2, 500);
  BOOST_TEST(workers.count() == 2u);
  BOOST_TEST(workers.grain() == 500);
  BOOST_TEST(!workers.busy());
  BOOST_CHECK_NO_THROW(workers.check_process());
}

BOOST_AUTO_TEST_SUITE_END()
