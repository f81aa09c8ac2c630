// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/logging/log_lines.hpp>

#include <boost/test/unit_test.hpp>

using troupe::logging::line_limit;

namespace {

const char one = 0;
const char other = 0;
constexpr auto second = line_limit::refill_ns;

/// How many of `count` lines of a kind are admitted.
int admitted(line_limit& limit, const char& kind, int count, std::int64_t now_ns) {
  int result = 0;
  for (int i = 0; i < count; ++i)
    if (limit.ask({&kind}, now_ns).admitted) ++result;
  return result;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_burst_is_admitted_and_then_one_line_a_second) {
  line_limit limit;
  BOOST_TEST(admitted(limit, one, 1000, 5 * second) == 100);
  BOOST_TEST(admitted(limit, one, 1000, 6 * second - 1) == 0);
  BOOST_TEST(admitted(limit, one, 1000, 6 * second) == 1);
  BOOST_TEST(admitted(limit, one, 1000, 9 * second) == 3);
  BOOST_TEST(admitted(limit, one, 1000, 9'000 * second) == 100);
}

BOOST_AUTO_TEST_CASE(lines_of_one_kind_hold_back_none_of_another) {  // LL-1
  line_limit limit;
  admitted(limit, one, 1000, 0);
  BOOST_TEST(limit.ask({&other}, 0).admitted);
}

BOOST_AUTO_TEST_CASE(every_line_that_is_left_out_is_told_once) {  // LL-2
  line_limit limit;
  admitted(limit, one, 150, 0);
  BOOST_TEST(limit.ask({&other}, second).left_out == 0u);
  BOOST_TEST(limit.ask({&one}, second).left_out == 50u);
  BOOST_TEST(limit.ask({&one}, 2 * second).left_out == 0u);
  admitted(limit, one, 7, 2 * second);
  BOOST_TEST(limit.held() == 7u);
  BOOST_TEST(limit.held() == 0u);
}

BOOST_AUTO_TEST_CASE(lines_about_one_peer_hold_back_none_about_another) {  // LL-1
  line_limit limit;
  for (int i = 0; i < 1000; ++i) limit.ask({&one, 1}, 0);
  BOOST_TEST(!limit.ask({&one, 1}, 0).admitted);
  BOOST_TEST(limit.ask({&one, 2}, 0).admitted);
  BOOST_TEST(limit.ask({&other, 1}, 0).admitted);
}

BOOST_AUTO_TEST_CASE(kinds_without_end_take_bounded_memory) {  // LL-1
  line_limit limit;
  for (std::uint64_t about = 1; about <= line_limit::most_kinds; ++about) limit.ask({&one, about}, 0);
  int admitted = 0;
  for (std::uint64_t about = 1'000'000; about < 1'001'000; ++about) admitted += limit.ask({&one, about}, 0).admitted ? 1 : 0;
  BOOST_TEST(admitted == 100);                                    // they count as one
  BOOST_TEST(limit.ask({&one, 1}, 0).admitted);                   // known before
  BOOST_TEST(limit.ask({&one, 2'000'000}, 2 * second).admitted);  // the quiet ones are forgotten, so there is space again
  for (std::uint64_t about = 3'000'000; about < 3'000'100; ++about) BOOST_TEST(limit.ask({&one, about}, 2 * second).admitted);
}
