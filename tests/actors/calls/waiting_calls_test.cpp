// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/waiting_calls.hpp>

#include <cstdint>
#include <memory>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "support/growth_of_time.hpp"

namespace {

using troupe::context_id;
using troupe::node_id;
using troupe::calls::waiting_calls;

waiting_calls::call call_of(std::uint64_t number, node_id caller, context_id context = {}) {
  auto result = std::make_shared<troupe::contracts::incoming_call>();
  result->number = number;
  result->request.payload.context = context;
  result->request.payload.message.node = caller;
  return result;
}

std::vector<std::uint64_t> numbers(const std::vector<waiting_calls::call>& of) {
  std::vector<std::uint64_t> result;
  for (const auto& each : of) result.push_back(each->number);
  return result;
}

std::uint64_t last = 0;  // number of the newest call
constexpr node_id one{1};
constexpr node_id two{2};
constexpr context_id of_one{one, 7};
constexpr context_id of_two{two, 7};

}  // namespace

BOOST_AUTO_TEST_SUITE(waiting_calls_tests)

BOOST_AUTO_TEST_CASE(calls_are_found_by_their_context_and_by_their_caller) {  // HW-2
  waiting_calls all;
  for (const std::uint64_t number : {5, 2, 9}) all.add(call_of(number, one, of_one));
  for (const std::uint64_t number : {4, 3}) all.add(call_of(number, two, of_one));
  all.add(call_of(1, one, of_two));
  all.add(call_of(6, two));
  BOOST_TEST(all.size() == 7u);
  BOOST_TEST(numbers(all.of(of_one)) == (std::vector<std::uint64_t>{2, 3, 4, 5, 9}), boost::test_tools::per_element());
  BOOST_TEST(numbers(all.of(of_two)) == std::vector<std::uint64_t>{1}, boost::test_tools::per_element());
  BOOST_TEST(all.of({two, 8}).empty());
  BOOST_TEST(numbers(all.from(two)) == (std::vector<std::uint64_t>{6, 3, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_call_leaves_once) {
  waiting_calls all;
  const auto call = call_of(1, one, of_one);
  BOOST_TEST(!all.contains(call));
  all.add(call);
  all.add(call);
  BOOST_TEST(all.contains(call));
  BOOST_TEST(all.erase(call));
  BOOST_TEST(!all.erase(call));
  BOOST_TEST(all.size() == 0u);
}

BOOST_AUTO_TEST_CASE(each_caller_has_a_limit_of_its_own) {  // QL-1
  waiting_calls all(100);
  const auto add = [&](node_id caller, std::uint64_t bytes) {
    const auto call = call_of(++last, caller);
    call->bytes = bytes;
    all.add(call);
    all.add(call);  // counts once
    return call;
  };
  const auto first = add(one, 60);
  BOOST_TEST(!all.has_room(one, 41));
  BOOST_TEST(all.has_room(one, 40));
  const auto second = add(one, 40);
  BOOST_TEST(all.bytes_of(one) == 100u);
  BOOST_TEST(all.has_room(two, 100));
  all.erase(first);
  all.erase(first);
  BOOST_TEST(all.bytes_of(one) == 40u);
  BOOST_TEST(all.has_room(one, 60));
  all.erase(second);
  BOOST_TEST(all.bytes_of(one) == 0u);
}

BOOST_AUTO_TEST_CASE(a_single_call_is_taken_whatever_its_size) {  // QL-1
  waiting_calls all(100);
  BOOST_TEST(all.has_room(one, 1000));
  const auto large = call_of(1, one);
  large->bytes = 1000;
  all.add(large);
  BOOST_TEST(!all.has_room(one, 1));
  all.erase(large);
  BOOST_TEST(all.has_room(one, 1));
}

// HW-1: a peer that makes many calls and then releases one context after another would hold up all others.
BOOST_AUTO_TEST_CASE(very_many_calls_are_found_by_their_contexts_one_by_one) {
  const auto find = [](int count) {
    const auto many = static_cast<std::uint64_t>(count);
    waiting_calls all;
    for (std::uint64_t number = 1; number <= many; ++number) all.add(call_of(number, one, {one, number}));
    std::size_t found = 0;
    for (std::uint64_t number = 1; number <= many; ++number)
      for (const auto& each : all.of({one, number})) found += all.erase(each) ? 1 : 0;
    BOOST_TEST(found == many);
  };
  BOOST_TEST(troupe::test::growth_of_time(find, 1'000, 100'000) < 1'000);  // 10,000 if each call were looked for among all
}

BOOST_AUTO_TEST_SUITE_END()
