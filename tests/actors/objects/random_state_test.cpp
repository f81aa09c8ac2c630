// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/random_state.hpp>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

using namespace troupe::objects;

BOOST_AUTO_TEST_SUITE(state_of_random_numbers)

BOOST_AUTO_TEST_CASE(that_is_set_again_gives_the_same_draws) {
  const auto state = random_state();
  const auto drawn = at::rand({5});
  BOOST_TEST(!at::equal(at::rand({5}), drawn));
  set_random_state(state);
  BOOST_TEST(at::equal(at::rand({5}), drawn));
}

BOOST_AUTO_TEST_CASE(that_is_none_is_refused_and_changes_nothing) {
  const auto state = random_state();
  const auto none = at::zeros({3}, at::kByte);
  BOOST_CHECK_THROW(check_random_state(none), c10::Error);
  BOOST_CHECK_THROW(set_random_state(none), c10::Error);
  BOOST_CHECK_NO_THROW(check_random_state(state));
  BOOST_TEST(at::equal(random_state(), state));
}

BOOST_AUTO_TEST_SUITE_END()
