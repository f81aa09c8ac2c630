// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <random>

#include <troupe/engine/protocol/purse.hpp>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(purses)

// PU-1
BOOST_AUTO_TEST_CASE(parts_in_any_order_make_the_whole_again) {
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

// PU-2
BOOST_AUTO_TEST_CASE(names_stay_with_the_one_that_splits_and_go_with_everything) {
  auto rest = protocol::whole_purse();
  rest.begun = {node_id{1}};
  auto part = protocol::split(rest);
  BOOST_TEST(part.begun.empty());
  auto all = protocol::take(rest);
  BOOST_TEST((all.begun == std::vector<node_id>{node_id{1}}));
  BOOST_TEST(protocol::is_empty(rest));
  protocol::merge(all, {.weight = {}, .begun = {node_id{1}, node_id{2}}, .settled = {}});
  BOOST_TEST(all.begun.size() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
