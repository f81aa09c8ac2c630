// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/recipe.hpp"

#include <boost/test/unit_test.hpp>

#include <stdexcept>
#include <string>

#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using troupe::apps::test::says;

BOOST_AUTO_TEST_SUITE(recipe_of_a_run)

BOOST_AUTO_TEST_CASE(the_learning_rate_warms_up_and_falls) {
  const recipe how;
  BOOST_TEST(how.rate_at(0, 0) == how.learning_rate / 20, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(how.rate_at(19, 0) == how.learning_rate, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(how.rate_at(500, 0.5) == how.learning_rate * 0.51, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(how.rate_at(900, 1) == how.learning_rate * 0.02, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(how.rate_at(900, 7) == how.rate_at(900, 1));
}

BOOST_AUTO_TEST_CASE(values_that_can_not_be_are_named_by_their_option) {
  recipe how;
  how.micro_batches = how.batch + 1;
  BOOST_CHECK_EXCEPTION(how.check(), std::runtime_error, says({"--micro-batches", std::to_string(how.micro_batches)}));
  how = {};
  how.learning_rate = -1;
  BOOST_CHECK_EXCEPTION(how.check(), std::runtime_error, says({"--learning-rate", "-1"}));
}

BOOST_AUTO_TEST_SUITE_END()
