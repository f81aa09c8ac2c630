// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/schedule.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe::apps::charlm;
using boost::test_tools::tolerance;

BOOST_AUTO_TEST_SUITE(schedules_of_a_pipeline)

BOOST_AUTO_TEST_CASE(each_schedule_has_a_name) {
  for (const auto each : {schedule::dataflow, schedule::gpipe, schedule::one_forward_one_backward, schedule::zero_bubble})
    BOOST_TEST((schedule_named(to_text(each)) == each));
  BOOST_TEST(!schedule_named("interleaved"));
}

BOOST_AUTO_TEST_CASE(the_bubble_is_what_the_stages_did_not_work) {
  work_times all{.forward = 1, .backward = 2, .weights = 0.5, .span = 5};
  BOOST_TEST(all.bubble() == 0.3, tolerance(1e-12));
  all += {.forward = 2, .backward = 2, .weights = 0.5, .span = 5};
  BOOST_TEST(all.bubble() == 0.2, tolerance(1e-12));
  BOOST_TEST(work_times{}.bubble() == 0);
}

// The bubble of ZB-H1: (s - 1)(F + B - W) of idle time beside m(F + B + W) of work.
BOOST_AUTO_TEST_CASE(the_formulas_are_the_published_ones) {
  for (const auto each : {schedule::gpipe, schedule::one_forward_one_backward}) {
    BOOST_TEST(bubble_by_formula(each, 2, 12, {}) == 1.0 / 13, tolerance(1e-12));
    BOOST_TEST(bubble_by_formula(each, 4, 8, {.forward = 1, .backward = 2}) == 3.0 / 11, tolerance(1e-12));
    BOOST_TEST(bubble_by_formula(each, 1, 8, {}) == 0);
  }
  const work_times equal{.forward = 7, .backward = 7, .weights = 7};
  BOOST_TEST(bubble_by_formula(schedule::zero_bubble, 4, 8, equal) == 3.0 / (8 * 3 + 3), tolerance(1e-12));
  const work_times none_apart{.forward = 1, .backward = 2};
  BOOST_TEST(bubble_by_formula(schedule::zero_bubble, 4, 8, none_apart) == 3.0 / 11, tolerance(1e-12));
}

BOOST_AUTO_TEST_SUITE_END()
