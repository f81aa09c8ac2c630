// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/own_offers.hpp>

#include <boost/test/unit_test.hpp>

#include <string>

#include <ATen/ATen.h>

using troupe::devices::own_offers;

BOOST_AUTO_TEST_SUITE(offers_within_a_process)

BOOST_AUTO_TEST_CASE(can_be_found_as_long_as_they_are_kept) {  // OO-1
  own_offers all;
  const auto one = at::ones({2});
  auto first = all.add({one, nullptr});
  const auto second = all.add({at::ones({3}), nullptr});
  BOOST_TEST(*first != *second);
  BOOST_REQUIRE(all.find(*first));
  BOOST_TEST(all.find(*first)->elements.is_same(one));
  const std::string handle = *first;
  first.reset();
  BOOST_TEST((!all.find(handle) && all.find(*second)));
  BOOST_TEST(one.use_count() == 1U);
  BOOST_TEST(!all.find("no handle"));
}

BOOST_AUTO_TEST_SUITE_END()
