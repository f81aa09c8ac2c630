// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/recipe.hpp"

#include <boost/test/unit_test.hpp>

#include <stdexcept>

#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using troupe::apps::test::says;

BOOST_AUTO_TEST_SUITE(shape_of_a_model)

namespace {

constexpr model_shape small{.vocabulary = 11, .blocks = 4, .width = 16, .heads = 2, .context = 8};

}  // namespace

BOOST_AUTO_TEST_CASE(a_shape_that_can_not_be_is_told_what_would_do) {
  auto uneven = small;
  uneven.heads = 3;
  BOOST_CHECK_EXCEPTION(uneven.check(), std::runtime_error, says({"--width 16", "--heads 3", "--width 18"}));
}

BOOST_AUTO_TEST_CASE(a_shape_comes_back_from_its_attributes_and_is_described) {
  BOOST_TEST((model_shape::from_attributes(small.to_attributes()) == small));
  BOOST_TEST(small.describe() == "4 blocks of width 16 with 2 heads, context 8, 11 characters");
}

BOOST_AUTO_TEST_SUITE_END()
