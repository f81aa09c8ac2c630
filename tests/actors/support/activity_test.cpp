// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/activity.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>

using troupe::support::activity;

BOOST_AUTO_TEST_SUITE(counts_of_a_node)

BOOST_AUTO_TEST_CASE(are_shown_in_its_status) {
  activity counts;
  std::uint64_t value = 0;
  for (activity::count* each :
       {&counts.contexts, &counts.contexts_opened, &counts.passes_running, &counts.passes_completed, &counts.passes_failed,
        &counts.graph_tasks, &counts.calls_made, &counts.calls_waiting, &counts.calls_failed, &counts.calls_run,
        &counts.calls_running, &counts.functions_run, &counts.connections_refused, &counts.requests_refused})
    *each = ++value;
  troupe::node_status status;
  counts.fill(status);
  BOOST_TEST(status.contexts == 1u);
  BOOST_TEST(status.contexts_opened == 2u);
  BOOST_TEST(status.passes_running == 3u);
  BOOST_TEST(status.passes_completed == 4u);
  BOOST_TEST(status.passes_failed == 5u);
  BOOST_TEST(status.graph_tasks == 6u);
  BOOST_TEST(status.calls_made == 7u);
  BOOST_TEST(status.calls_waiting == 8u);
  BOOST_TEST(status.calls_failed == 9u);
  BOOST_TEST(status.calls_run == 10u);
  BOOST_TEST(status.calls_running == 11u);
  BOOST_TEST(status.functions_run == 12u);
  BOOST_TEST(status.connections_refused == 13u);
  BOOST_TEST(status.requests_refused == 14u);
}

BOOST_AUTO_TEST_CASE(of_passes_tell_those_that_succeeded_from_those_that_failed) {  // AC-1
  activity counts;
  counts.passes_running = 2;
  counts.pass_ended(true);
  counts.pass_ended(false);
  BOOST_TEST(counts.passes_running == 0u);
  BOOST_TEST(counts.passes_completed == 1u);
  BOOST_TEST(counts.passes_failed == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
