// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/inner_time.hpp>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_CASE(a_part_ends_before_the_whole_and_thousands_of_parts_fit_into_each_other) {
  using std::chrono::milliseconds;
  using troupe::support::inner_time;
  BOOST_TEST(inner_time(milliseconds(60'000)).count() == 59'900);
  BOOST_TEST(inner_time(milliseconds(1'000)).count() == 990);
  BOOST_TEST(inner_time(milliseconds(20)).count() == 19);
  for (const auto least : {-5, 0, 1}) BOOST_TEST(inner_time(milliseconds(least)).count() == 1);
  for (const auto all : {1'000, 60'000}) {
    auto left = milliseconds(all);
    for (std::size_t depth = 0; depth < 4096; ++depth) left = inner_time(left, depth);
    BOOST_TEST(left.count() > all / 2);
  }
}
