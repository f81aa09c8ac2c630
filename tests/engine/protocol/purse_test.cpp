// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include <troupe/engine/protocol/purse.hpp>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(purses)

// PU-1
BOOST_AUTO_TEST_CASE(parts_in_any_order_make_the_whole_again, *boost::unit_test::label("explored")) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<purse> parts{protocol::whole_purse()};
    for (int i = 0; i < 300; ++i) parts.push_back(protocol::split(parts[random() % parts.size()]));
    std::shuffle(parts.begin(), parts.end(), random);
    purse sum;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      BOOST_REQUIRE(!protocol::is_whole(sum));
      protocol::merge(sum, parts[i]);
    }
    BOOST_REQUIRE(protocol::is_whole(sum));
  }
}

BOOST_AUTO_TEST_CASE(a_long_chain_of_splits_needs_no_more_than_a_number_a_part) {
  auto rest = protocol::whole_purse();
  std::vector<purse> given;
  for (int i = 0; i < 10'000; ++i) given.push_back(protocol::split(rest));
  BOOST_TEST(rest.weight.size() == 1u);
  for (auto part = given.rbegin(); part != given.rend(); ++part) protocol::merge(rest, *part);
  BOOST_TEST(protocol::is_whole(rest));
}

// PU-1, PU-4
BOOST_AUTO_TEST_CASE(many_parts_of_one_purse_are_large_enough_to_make_short_purses, *boost::unit_test::label("explored")) {
  std::mt19937 random(9);
  for (const std::size_t count : {1U, 2U, 3U, 7U, 8U, 100U, 10'000U}) {
    purse rest{.weight = {3, 5, 17}, .begun = 4};
    const auto before = rest;
    protocol::splitter from;
    std::vector<purse> parts;
    const auto highest = std::max(17U, 3 + 1 + 2 * static_cast<std::uint32_t>(std::bit_width(count) - 1));
    for (std::size_t i = 0; i < count; ++i) {
      parts.push_back(from.split(rest));
      BOOST_TEST_REQUIRE(!rest.weight.empty());
      BOOST_TEST_REQUIRE(rest.weight.back() <= highest);
      BOOST_TEST_REQUIRE(
        (std::adjacent_find(rest.weight.begin(), rest.weight.end(), std::greater_equal()) == rest.weight.end()));
      BOOST_TEST_REQUIRE(parts.back().weight.size() == 1U);
      BOOST_TEST_REQUIRE(parts.back().weight.front() <= highest);
    }
    std::shuffle(parts.begin(), parts.end(), random);
    for (const auto& part : parts) protocol::merge(rest, part);
    BOOST_TEST((rest == before));
  }
  auto two = protocol::whole_purse();  // a pass in which one message goes to each of two nodes needs one number for each
  protocol::splitter from;
  BOOST_TEST((from.split(two).weight == std::vector<std::uint32_t>{1}));
  BOOST_TEST((two.weight == std::vector<std::uint32_t>{1}));
}

// PU-1. Many parts at once are added in another way than a few.
BOOST_AUTO_TEST_CASE(many_parts_at_once_make_what_they_make_one_by_one, *boost::unit_test::label("explored")) {
  std::mt19937 random(8);
  for (int round = 0; round < 300; ++round) {
    std::vector<purse> parts{protocol::whole_purse()};
    for (int i = 0; i < 300; ++i) parts.push_back(protocol::split(parts[random() % parts.size()]));
    std::shuffle(parts.begin(), parts.end(), random);
    parts.resize(random() % parts.size() + 1);
    purse one_by_one;
    purse first, second;
    for (const auto& part : parts) {
      protocol::merge(one_by_one, part);
      protocol::merge(random() % 2 == 0 ? first : second, part);
    }
    protocol::merge(first, second);
    BOOST_REQUIRE((first == one_by_one));
  }
  // Another node may send more than the whole weight.
  purse all{.weight = {0, 0, 1, 2, 3, 4, 5, 6, 7, 8}};
  protocol::merge(all, {.weight = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}});
  BOOST_TEST((all.weight == std::vector<std::uint32_t>{0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 9}));
}

// PU-3: with a search for each part, this would take hours.
BOOST_AUTO_TEST_CASE(a_purse_of_millions_of_parts_is_merged_at_once) {
  constexpr std::uint32_t many = 2'000'000;
  purse all = protocol::whole_purse();
  purse other;
  for (std::uint32_t i = 0; i < many; ++i) {
    all.weight.push_back(many + i);
    other.weight.push_back(i + 1);
  }
  protocol::merge(all, other);
  BOOST_TEST(std::is_sorted(all.weight.begin(), all.weight.end()));
}

// PU-2
BOOST_AUTO_TEST_CASE(counts_stay_with_the_one_that_splits_and_go_with_everything) {
  auto rest = protocol::whole_purse();
  rest.begun = 1;
  auto part = protocol::split(rest);
  BOOST_TEST(part.begun == 0U);
  auto all = protocol::take(rest);
  BOOST_TEST(all.begun == 1U);
  BOOST_TEST(protocol::is_empty(rest));
  part.begun = 2;
  part.settled = 2;
  protocol::merge(all, part);
  BOOST_TEST(all.begun == 3U);
  BOOST_TEST(!protocol::all_settled(all));
  all.settled = 3;
  BOOST_TEST(protocol::all_settled(all));
}

BOOST_AUTO_TEST_SUITE_END()
