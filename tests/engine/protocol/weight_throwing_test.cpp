// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include <troupe/engine/protocol/weight_throwing.hpp>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(weight_throwing)

// WG-1
BOOST_AUTO_TEST_CASE(shares_in_any_order_make_the_whole_again, *boost::unit_test::label("explored")) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<weight_share> shares{protocol::whole_weight()};
    for (int i = 0; i < 300; ++i) shares.push_back(protocol::split(shares[random() % shares.size()]));
    std::shuffle(shares.begin(), shares.end(), random);
    weight_share sum;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      BOOST_REQUIRE(!protocol::is_whole(sum));
      protocol::merge(sum, shares[i]);
    }
    BOOST_REQUIRE(protocol::is_whole(sum));
  }
}

BOOST_AUTO_TEST_CASE(a_long_chain_of_splits_needs_no_more_than_a_number_a_share) {
  auto rest = protocol::whole_weight();
  std::vector<weight_share> given;
  for (int i = 0; i < 10'000; ++i) given.push_back(protocol::split(rest));
  BOOST_TEST(rest.weight.size() == 1u);
  for (auto share = given.rbegin(); share != given.rend(); ++share) protocol::merge(rest, *share);
  BOOST_TEST(protocol::is_whole(rest));
}

// WG-1, WG-4
BOOST_AUTO_TEST_CASE(many_shares_of_one_weight_are_large_enough_to_make_short_sums, *boost::unit_test::label("explored")) {
  std::mt19937 random(9);
  for (const std::size_t count : {1U, 2U, 3U, 7U, 8U, 100U, 10'000U}) {
    weight_share rest{.weight = {3, 5, 17}, .begun = 4};
    const auto before = rest;
    protocol::splitter from;
    std::vector<weight_share> shares;
    const auto highest = std::max(17U, 3 + 1 + 2 * static_cast<std::uint32_t>(std::bit_width(count) - 1));
    for (std::size_t i = 0; i < count; ++i) {
      shares.push_back(from.split(rest));
      BOOST_TEST_REQUIRE(!rest.weight.empty());
      BOOST_TEST_REQUIRE(rest.weight.back() <= highest);
      BOOST_TEST_REQUIRE(
        (std::adjacent_find(rest.weight.begin(), rest.weight.end(), std::greater_equal()) == rest.weight.end()));
      BOOST_TEST_REQUIRE(shares.back().weight.size() == 1U);
      BOOST_TEST_REQUIRE(shares.back().weight.front() <= highest);
    }
    std::shuffle(shares.begin(), shares.end(), random);
    for (const auto& share : shares) protocol::merge(rest, share);
    BOOST_TEST((rest == before));
  }
  auto two = protocol::whole_weight();  // a pass in which one message goes to each of two nodes needs one number for each
  protocol::splitter from;
  BOOST_TEST((from.split(two).weight == std::vector<std::uint32_t>{1}));
  BOOST_TEST((two.weight == std::vector<std::uint32_t>{1}));
}

// WG-1. Many shares at once are added in another way than a few.
BOOST_AUTO_TEST_CASE(many_shares_at_once_make_what_they_make_one_by_one, *boost::unit_test::label("explored")) {
  std::mt19937 random(8);
  for (int round = 0; round < 300; ++round) {
    std::vector<weight_share> shares{protocol::whole_weight()};
    for (int i = 0; i < 300; ++i) shares.push_back(protocol::split(shares[random() % shares.size()]));
    std::shuffle(shares.begin(), shares.end(), random);
    shares.resize(random() % shares.size() + 1);
    weight_share one_by_one;
    weight_share first, second;
    for (const auto& share : shares) {
      protocol::merge(one_by_one, share);
      protocol::merge(random() % 2 == 0 ? first : second, share);
    }
    protocol::merge(first, second);
    BOOST_REQUIRE((first == one_by_one));
  }
  // Another node may send more than the whole weight.
  weight_share all{.weight = {0, 0, 1, 2, 3, 4, 5, 6, 7, 8}};
  protocol::merge(all, {.weight = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}});
  BOOST_TEST((all.weight == std::vector<std::uint32_t>{0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 9}));
}

// WG-3: with a search for each power, this would take hours.
BOOST_AUTO_TEST_CASE(a_sum_of_millions_of_powers_is_merged_at_once) {
  constexpr std::uint32_t many = 2'000'000;
  weight_share all = protocol::whole_weight();
  weight_share other;
  for (std::uint32_t i = 0; i < many; ++i) {
    all.weight.push_back(many + i);
    other.weight.push_back(i + 1);
  }
  protocol::merge(all, other);
  BOOST_TEST(std::is_sorted(all.weight.begin(), all.weight.end()));
}

// WG-2
BOOST_AUTO_TEST_CASE(counts_stay_with_the_one_that_splits_and_go_with_everything) {
  auto rest = protocol::whole_weight();
  rest.begun = 1;
  auto share = protocol::split(rest);
  BOOST_TEST(share.begun == 0U);
  auto all = protocol::take(rest);
  BOOST_TEST(all.begun == 1U);
  BOOST_TEST(protocol::is_empty(rest));
  share.begun = 2;
  share.settled = 2;
  protocol::merge(all, share);
  BOOST_TEST(all.begun == 3U);
  BOOST_TEST(!protocol::all_settled(all));
  all.settled = 3;
  BOOST_TEST(protocol::all_settled(all));
}

BOOST_AUTO_TEST_SUITE_END()
