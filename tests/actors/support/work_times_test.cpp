// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/work_times.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include <boost/test/unit_test.hpp>

namespace {

constexpr std::int64_t short_ns = 500'000;

}  // namespace

BOOST_AUTO_TEST_SUITE(work_times)

BOOST_AUTO_TEST_CASE(what_never_ran_is_not_short) {
  troupe::support::work_times times(short_ns);
  BOOST_TEST(!times.is_short("forward"));
  times.note("forward", 0);
  BOOST_TEST(times.is_short("forward"));
}

BOOST_AUTO_TEST_CASE(what_ran_once_is_as_long_as_it_was) {
  troupe::support::work_times times(short_ns);
  times.note("forward", 600'000);
  BOOST_TEST(!times.is_short("forward"));
  times.note("forward", 100'000);
  BOOST_TEST(times.is_short("forward"));
}

BOOST_AUTO_TEST_CASE(a_slow_start_is_forgotten_and_a_change_noticed) {
  troupe::support::work_times times(short_ns);
  times.note("forward", 20'000'000);
  BOOST_TEST(!times.is_short("forward"));
  for (int i = 0; i < 8; ++i) times.note("forward", 10'000);
  BOOST_TEST(times.is_short("forward"));
  times.note("forward", 20'000'000);
  BOOST_TEST(!times.is_short("forward"));
}

BOOST_AUTO_TEST_CASE(times_of_many_kinds_stay_within_their_table) {
  struct {
    troupe::support::work_times times{short_ns};
    std::array<char, 64> behind{};
  } memory;
  for (int i = 0; i < 10'000; ++i) {
    const auto kind = "forward" + std::to_string(i);
    memory.times.note(kind, 1'000);
    BOOST_REQUIRE(memory.times.is_short(kind));
  }
  BOOST_TEST(std::all_of(memory.behind.begin(), memory.behind.end(), [](char each) { return each == 0; }));
}

BOOST_AUTO_TEST_CASE(no_work_is_short_if_the_limit_is_0) {
  troupe::support::work_times times(0);
  times.note("forward", 0);
  BOOST_TEST(!times.is_short("forward"));
}

BOOST_AUTO_TEST_SUITE_END()
