// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/contracts/send_credits.hpp>

#include <boost/test/unit_test.hpp>

namespace {

// tests/actors/worlds_of_waiting_test.cpp searches for circles of waiting (BA-3).

using troupe::node_id;
using troupe::contracts::credit_accounts;

constexpr credit_accounts::account other{node_id{2}, 0};

}  // namespace

BOOST_AUTO_TEST_SUITE(accounts_of_credit)

BOOST_AUTO_TEST_CASE(bytes_up_to_the_limit_are_under_way_or_one_call) {  // BA-1
  credit_accounts all(100);
  BOOST_TEST(all.take(other, 60));
  BOOST_TEST(!all.take(other, 41));
  BOOST_TEST(all.take(other, 40));
  all.give_back(other, 60);
  all.give_back(other, 40);
  BOOST_TEST(all.empty());
  BOOST_TEST(all.take(other, 1'000));
  BOOST_TEST(!all.take(other, 1));
  BOOST_TEST(all.take({node_id{3}, 0}, 1));  // of another node
  BOOST_TEST(all.take({node_id{2}, 1}, 1));  // of another depth
}

BOOST_AUTO_TEST_CASE(calls_leave_in_the_order_in_which_they_asked) {  // BA-2
  credit_accounts all(100);
  BOOST_TEST(all.take(other, 90));
  const auto first = all.wait(other, 50);
  const auto second = all.wait(other, 10);
  BOOST_TEST(!all.take(other, 10));  // would fit, but others ask for longer
  BOOST_TEST(!all.take_in_turn(other, second));
  BOOST_TEST(!all.take_in_turn(other, first));
  BOOST_TEST(all.give_back(other, 90));
  BOOST_TEST(!all.take_in_turn(other, second));
  BOOST_TEST(all.take_in_turn(other, first));
  BOOST_TEST(all.take_in_turn(other, second));
  BOOST_TEST(all.under_way(other) == 60U);
}

BOOST_AUTO_TEST_CASE(who_gives_up_is_in_nobodys_way) {
  credit_accounts all(100);
  BOOST_TEST(all.take(other, 100));
  const auto first = all.wait(other, 50);
  const auto second = all.wait(other, 10);
  all.give_up(other, first);
  all.give_back(other, 100);
  BOOST_TEST(all.take_in_turn(other, second));
  all.give_back(other, 10);
  BOOST_TEST(all.empty());
}

BOOST_AUTO_TEST_SUITE_END()
