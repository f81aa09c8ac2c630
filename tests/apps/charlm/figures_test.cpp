// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/figures.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace troupe::apps::charlm;

BOOST_AUTO_TEST_SUITE(figures_for_people)

BOOST_AUTO_TEST_CASE(times_and_numbers_read_well) {
  BOOST_TEST(clock_text(3.2) == "0:04");
  BOOST_TEST(clock_text(3725) == "1:02:05");
  BOOST_TEST(clock_text(-5) == "0:00");
  BOOST_TEST(grouped(999) == "999");
  BOOST_TEST(grouped(1234567) == "1,234,567");
}

BOOST_AUTO_TEST_SUITE_END()
