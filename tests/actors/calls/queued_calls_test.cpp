// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/queued_calls.hpp>

#include <boost/test/unit_test.hpp>

using troupe::node_id;
using troupe::calls::queued_calls;

BOOST_AUTO_TEST_SUITE(calls_in_the_queue)

BOOST_AUTO_TEST_CASE(each_caller_has_a_limit_of_its_own) {  // QL-1
  queued_calls queue(100);
  const node_id a{1};
  const node_id b{2};
  auto first = queue.add(a, 60);
  BOOST_TEST(first != nullptr);
  BOOST_TEST(queue.add(a, 41) == nullptr);
  auto second = queue.add(a, 40);
  BOOST_TEST(second != nullptr);
  BOOST_TEST(queue.waiting(a) == 100U);
  BOOST_TEST(queue.add(b, 100) != nullptr);  // and gone at once
  BOOST_TEST(queue.waiting(b) == 0U);
  first = nullptr;
  BOOST_TEST(queue.waiting(a) == 40U);
  BOOST_TEST(queue.add(a, 60) != nullptr);
  second = nullptr;
  BOOST_TEST(queue.waiting(a) == 0U);
}

BOOST_AUTO_TEST_CASE(a_single_call_is_taken_whatever_its_size) {  // QL-1
  queued_calls queue(100);
  const node_id a{1};
  auto large = queue.add(a, 1000);
  BOOST_TEST(large != nullptr);
  BOOST_TEST(queue.add(a, 1) == nullptr);
  large = nullptr;
  BOOST_TEST(queue.add(a, 1) != nullptr);
}

BOOST_AUTO_TEST_CASE(a_call_may_end_after_the_queue) {
  std::shared_ptr<void> call;
  {
    queued_calls queue(100);
    call = queue.add(node_id{1}, 10);
  }
  call = nullptr;
}

BOOST_AUTO_TEST_SUITE_END()
