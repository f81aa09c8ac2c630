// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/call_pool.hpp>

#include <boost/test/unit_test.hpp>

#include "support/growth_of_time.hpp"

#include <string>
#include <vector>

namespace {

using pool = troupe::calls::call_pool<char, int>;  // workers 'A', 'B' ...; calls 1, 2 ...

}  // namespace

// PW-1, PW-2
BOOST_AUTO_TEST_CASE(calls_start_in_their_order_and_no_more_than_the_limit_compute) {
  pool calls(2);
  for (int call = 1; call <= 4; ++call) calls.add(call);
  BOOST_TEST(calls.next()->call == 1);
  BOOST_TEST(calls.next()->call == 2);
  BOOST_TEST(!calls.next());
  calls.idle('A');
  const auto third = calls.next();
  BOOST_TEST_REQUIRE(third.has_value());
  BOOST_TEST(third->call == 3);
  BOOST_TEST((third->worker == 'A'));
  BOOST_TEST(!calls.next());
}

// PW-1: if a waiting call kept its worker slot, a call that waits for a call behind it in the queue would wait for ever.
BOOST_AUTO_TEST_CASE(a_call_that_waits_lends_its_worker_slot_and_takes_it_back_beyond_the_limit) {
  pool calls(1);
  calls.add(1);
  calls.add(2);
  calls.add(3);
  BOOST_TEST(calls.next()->call == 1);
  BOOST_TEST(!calls.next());
  calls.blocked();
  BOOST_TEST(calls.next()->call == 2);
  calls.resumed();
  BOOST_TEST(!calls.next());
  calls.idle('A');
  BOOST_TEST(!calls.next());
  calls.idle('B');
  BOOST_TEST(calls.next()->call == 3);
}

// PW-3
BOOST_AUTO_TEST_CASE(idle_workers_beyond_those_that_are_kept_are_let_go) {
  pool calls(1, 2);
  for (int call = 1; call <= 4; ++call) {
    calls.add(call);
    BOOST_TEST(calls.next().has_value());
    calls.blocked();
  }
  for (int call = 1; call <= 4; ++call) calls.resumed();
  std::string let_go;
  for (const char worker : {'A', 'B', 'C', 'D'}) {
    calls.idle(worker);
    while (const auto one = calls.surplus()) let_go += *one;
  }
  BOOST_TEST(let_go == "CD");
  calls.add(5);
  BOOST_TEST((calls.next()->worker == 'B'));
}

BOOST_AUTO_TEST_CASE(at_least_as_many_idle_workers_are_kept_as_calls_compute) {
  pool calls(2);
  for (int call = 1; call <= 2; ++call) {
    calls.add(call);
    calls.next();
  }
  calls.idle('A');
  calls.idle('B');
  BOOST_TEST(!calls.surplus());
}

// PW-1
BOOST_AUTO_TEST_CASE(a_call_without_a_worker_takes_no_worker_slot) {
  pool calls(1);
  calls.add(1);
  calls.add(2);
  BOOST_TEST(calls.next()->call == 1);
  calls.not_started();
  BOOST_TEST(calls.next()->call == 2);
  BOOST_TEST(!calls.next());
}

BOOST_AUTO_TEST_CASE(a_limit_of_none_is_one) {
  pool calls(0);
  calls.add(1);
  BOOST_TEST(calls.next().has_value());
}

BOOST_AUTO_TEST_CASE(calls_that_were_taken_off_the_queue_never_start) {  // PW-4
  pool calls(1);
  std::vector<std::uint64_t> numbers;
  for (int call = 1; call <= 6; ++call) numbers.push_back(calls.add(call));
  BOOST_TEST(calls.next()->call == 1);
  for (const int call : {2, 4, 6}) BOOST_TEST(calls.take(numbers.at(static_cast<std::size_t>(call - 1))));
  BOOST_TEST(!calls.take(numbers.at(0)));  // has started
  BOOST_TEST(!calls.take(numbers.at(1)));
  BOOST_TEST(!calls.take(0));
  calls.idle('A');
  BOOST_TEST(calls.next()->call == 3);
  calls.idle('A');
  BOOST_TEST(calls.next()->call == 5);
  calls.idle('A');
  BOOST_TEST(!calls.next());
}

// PW-1: deeper calls start, or the calls that have begun might wait for them for ever.
BOOST_AUTO_TEST_CASE(calls_of_a_depth_that_have_begun_are_bounded) {
  pool calls(1, 0, 2);
  for (int call = 1; call <= 4; ++call) calls.add(call, 0);
  calls.add(11, 1);
  for (int call = 1; call <= 2; ++call) {
    BOOST_TEST(calls.next()->call == call);
    calls.blocked();
  }
  BOOST_TEST(calls.next()->call == 11);
  calls.blocked();
  BOOST_TEST(!calls.next());
  calls.resumed();
  calls.idle('A', 1);
  BOOST_TEST(!calls.next());
  calls.resumed();
  calls.idle('B', 0);
  BOOST_TEST(calls.next()->call == 3);
  calls.not_started(0);
  BOOST_TEST(calls.next()->call == 4);
}

// PW-2, PW-4
BOOST_AUTO_TEST_CASE(calls_of_several_depths_start_in_their_order_and_are_taken_in_it) {
  pool calls(1);
  std::vector<std::uint64_t> numbers;
  for (int call = 1; call <= 6; ++call) numbers.push_back(calls.add(call, static_cast<std::size_t>(call % 3)));
  BOOST_TEST(calls.next()->call == 1);
  BOOST_TEST(!calls.take(numbers.at(3), 0));  // is of another depth
  for (const std::size_t call : {4, 5, 6}) BOOST_TEST(calls.take(numbers.at(call - 1), call % 3));
  for (int call = 2; call <= 3; ++call) {
    calls.idle('A', 0);
    BOOST_TEST(calls.next()->call == call);
  }
  calls.idle('A', 0);
  BOOST_TEST(!calls.next());
}

// PW-5: calls that a peer makes and gives up, far more than a node has in its queue otherwise, would take minutes one by one if each
// was looked for among all.
BOOST_AUTO_TEST_CASE(very_many_calls_are_taken_one_by_one) {
  const auto take = [](int count) {
    pool calls(1);
    std::vector<std::uint64_t> numbers;
    for (int call = 0; call < count; ++call) numbers.push_back(calls.add(call));
    std::size_t taken = 0;
    for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) taken += calls.take(*number) ? 1 : 0;
    BOOST_TEST(taken == numbers.size());
    BOOST_TEST(!calls.next());
  };
  BOOST_TEST(troupe::test::growth_of_time(take, 3'000, 300'000) < 1'000);  // 10,000 if each call were looked for among all
}

// PW-5: a peer that takes no answers may have calls of every depth in the queue. Each look at them would be paid by the calls of others.
BOOST_AUTO_TEST_CASE(a_caller_without_credit_costs_one_look) {
  pool calls(1);
  const troupe::node_id full{1};
  const troupe::node_id other{2};
  for (int depth = 0; depth < 4096; ++depth) calls.add(depth, static_cast<std::size_t>(depth), full);
  calls.add(-1, 0, other);
  int looks = 0;
  const auto found = calls.next([&](troupe::node_id caller) {
    ++looks;
    return caller == other;
  });
  BOOST_TEST_REQUIRE(found.has_value());
  BOOST_TEST(found->call == -1);
  BOOST_TEST(looks == 2);
}

// PW-2
BOOST_AUTO_TEST_CASE(calls_of_many_depths_and_callers_start_in_their_order) {
  pool calls(1);
  std::vector<std::uint64_t> numbers;
  for (int call = 0; call < 60; ++call)
    numbers.push_back(calls.add(call, static_cast<std::size_t>(call * 7 % 5), {static_cast<std::uint64_t>(call % 3 + 1)}));
  BOOST_TEST(!calls.take(numbers[10], 4, {2}));  // of another depth: 10 * 7 % 5 is 0
  for (const int taken : {0, 13, 30, 59})
    BOOST_TEST(calls.take(numbers[static_cast<std::size_t>(taken)], static_cast<std::size_t>(taken * 7 % 5),
                          {static_cast<std::uint64_t>(taken % 3 + 1)}));
  std::vector<int> order;
  for (auto next = calls.next(); next; next = calls.next()) {
    order.push_back(next->call);
    calls.idle(0, static_cast<std::size_t>(next->call * 7 % 5));
  }
  std::vector<int> expected;
  for (int call = 0; call < 60; ++call)
    if (call != 0 && call != 13 && call != 30 && call != 59) expected.push_back(call);
  BOOST_TEST(order == expected, boost::test_tools::per_element());
}

// PW-1: a peer may claim a new depth for each call. The number of workers stays bounded.
BOOST_AUTO_TEST_CASE(all_depths_together_have_a_bounded_number_of_workers) {
  pool calls(1, 0, 256);
  std::size_t all = 0;
  for (std::size_t depth = 0; depth < 4096; ++depth) {
    BOOST_TEST(calls.most_begun(depth) >= (depth < 256 ? 16u : 1u));
    all += calls.most_begun(depth);
  }
  BOOST_TEST(calls.most_begun(0) == 256u);
  BOOST_TEST(calls.most_begun(1) == 256u);
  BOOST_TEST(all <= 9000u);
  for (int call = 0; call < 20; ++call) calls.add(call, 200);
  for (int call = 0; call < 16; ++call) {
    BOOST_TEST(calls.next()->call == call);
    calls.blocked();
  }
  BOOST_TEST(!calls.next());
}

// PW-3
BOOST_AUTO_TEST_CASE(workers_that_were_idle_since_the_last_look_are_unneeded) {
  pool calls(3, 3);
  for (int call = 1; call <= 3; ++call) {
    calls.add(call);
    calls.next();
  }
  for (const char worker : {'A', 'B', 'C'}) calls.idle(worker);
  BOOST_TEST(calls.unneeded().empty());
  calls.add(4);
  calls.next();
  calls.idle('C');
  BOOST_TEST((calls.unneeded() == std::vector{'A', 'B'}));
  BOOST_TEST(calls.has_idle());
  BOOST_TEST((calls.unneeded() == std::vector{'C'}));
  BOOST_TEST(!calls.has_idle());
}

// PW-1, PW-2
BOOST_AUTO_TEST_CASE(calls_of_a_series_take_no_worker_slot) {  // PW-6
  troupe::calls::call_pool<int, int> pool(1, 0, 2);
  for (const int call : {1, 2, 3, 4}) pool.add(call);
  const auto any = [](auto) { return true; };
  BOOST_TEST(pool.next()->call == 1);
  BOOST_TEST(!pool.next().has_value());
  BOOST_TEST(!pool.next_in_series(any, [](int) { return false; }).has_value());
  BOOST_TEST(pool.next_in_series(any, any).value() == 2);
  BOOST_TEST(!pool.next_in_series(any, any).has_value());  // two of the depth have begun
  pool.ended_in_series();
  BOOST_TEST(pool.next_in_series(any, any).value() == 3);
  pool.ended_in_series();
  pool.idle(7);
  const auto last = pool.next();
  BOOST_TEST(last->call == 4);
  BOOST_TEST(last->worker.value() == 7);
}

BOOST_AUTO_TEST_CASE(calls_of_a_node_without_credit_let_the_calls_of_others_pass) {
  pool calls(1);
  const troupe::node_id full{7};
  const troupe::node_id other{8};
  calls.add(1, 0, full);
  calls.add(2, 1, full);
  calls.add(3, 0, other);
  calls.add(4, 0, full);
  const auto has_credit = [&](troupe::node_id who) { return who != full; };
  BOOST_TEST(calls.next(has_credit)->call == 3);
  calls.idle('A', 0);
  BOOST_TEST(!calls.next(has_credit));
  for (const int call : {1, 2, 4}) {
    BOOST_TEST(calls.next()->call == call);
    calls.idle('A', call == 2 ? 1 : 0);
  }
}
