// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/released_contexts.hpp>

#include <boost/test/unit_test.hpp>

namespace {

using troupe::context_id;
using troupe::node_id;

constexpr node_id a{7};
constexpr node_id b{9};

}  // namespace

BOOST_AUTO_TEST_SUITE(released_contexts)

// RC-1
BOOST_AUTO_TEST_CASE(what_was_released_is_known_and_nothing_else) {
  troupe::passes::released_contexts released(100);
  for (const std::uint64_t number : {5, 3, 9, 4, 3}) released.add({a, number});
  for (const std::uint64_t number : {3, 4, 5, 9}) BOOST_TEST(released.contains({a, number}));
  for (const std::uint64_t number : {1, 2, 6, 8, 10}) BOOST_TEST(!released.contains({a, number}));
  BOOST_TEST(!released.contains({b, 4}));
  BOOST_TEST(!released.contains({node_id{8}, 4}));
  BOOST_TEST(released.stretches() == 2);
}

// RC-2
BOOST_AUTO_TEST_CASE(contexts_one_after_another_take_the_memory_of_one) {
  troupe::passes::released_contexts released(4);
  for (std::uint64_t number = 1; number <= 100'000; ++number) {
    released.add({a, number});
    released.add({b, number});
  }
  BOOST_TEST(released.stretches() == 2);
  BOOST_TEST(released.contains({a, 1}));
  BOOST_TEST(released.contains({b, 100'000}));
  BOOST_TEST(!released.contains({a, 100'001}));
}

// RC-2
BOOST_AUTO_TEST_CASE(of_those_with_gaps_the_oldest_are_forgotten) {
  troupe::passes::released_contexts released(4);
  released.add({b, 1});
  for (std::uint64_t number = 2; number <= 20; number += 2) released.add({a, number});
  BOOST_TEST(released.stretches() == 4);
  BOOST_TEST(released.contains({a, 20}));
  BOOST_TEST(released.contains({a, 16}));
  BOOST_TEST(!released.contains({a, 14}));
  BOOST_TEST(released.contains({b, 1}));
  released.add({node_id{10}, 1});
  BOOST_TEST(released.contains({node_id{10}, 1}));
  BOOST_TEST(released.stretches() == 4);
}

BOOST_AUTO_TEST_CASE(a_node_that_went_down_leaves_nothing) {
  troupe::passes::released_contexts released(10);
  for (const auto node : {a, b}) released.add({node, 1});
  released.add({a, UINT64_MAX});
  released.forget(a);
  BOOST_TEST(!released.contains({a, 1}));
  BOOST_TEST(released.contains({b, 1}));
  BOOST_TEST(released.stretches() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
