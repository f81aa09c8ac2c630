// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <vector>

#include <troupe/actors/support/activity.hpp>

BOOST_AUTO_TEST_CASE(the_resident_memory_of_the_process_grows_with_what_it_touches) {
  const auto before = troupe::support::resident_bytes();
  BOOST_TEST(before > 0u);
  const std::vector<char> touched(64 << 20, 'x');
  const auto after = troupe::support::resident_bytes();
  BOOST_TEST(after >= before + (60u << 20));
  BOOST_TEST(std::count(touched.begin(), touched.end(), 'x') == 64 << 20);
}
