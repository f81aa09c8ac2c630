// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/running_work.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <deque>

#include "support/allocation_count.hpp"

using troupe::services::running_work;

namespace {

constexpr std::int64_t second = 1'000'000'000;

}  // namespace

BOOST_AUTO_TEST_SUITE(the_work_that_runs)

BOOST_AUTO_TEST_CASE(is_told_while_it_runs) {  // RW-1
  running_work all;
  BOOST_TEST(all.text(0).empty());
  {
    const running_work::entry call(all, "the call of", "f", 1 * second);
    const running_work::entry pass(all, "a backward pass", {}, 2 * second);
    BOOST_TEST(all.text(4 * second) == "the call of 'f' (for 3 s), a backward pass (for 2 s)");
  }
  BOOST_TEST(all.text(4 * second).empty());
}

BOOST_AUTO_TEST_CASE(is_told_in_few_words_if_it_is_much) {  // RW-1
  running_work all;
  std::deque<running_work::entry> many;
  for (std::size_t i = 0; i < running_work::most_named + 2; ++i) many.emplace_back(all, "the call of", "f", 0);
  const auto text = all.text(second);
  BOOST_TEST(text.ends_with("the call of 'f' (for 1 s) and 2 more"));
  many.pop_back();
  many.pop_back();
  BOOST_TEST(all.text(second).ends_with("the call of 'f' (for 1 s)"));
}

BOOST_AUTO_TEST_CASE(takes_no_memory) {  // RW-2
  running_work all;
  const troupe::testing::allocation_count count;
  { const running_work::entry call(all, "the call of", "f", 0); }
  BOOST_TEST(count.bytes() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
