// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/lane_worker.hpp>

#include <boost/test/unit_test.hpp>

#include <future>
#include <memory>
#include <numeric>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include <troupe/actors/nodes/system_config.hpp>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(cpu_workers_of_a_pass)

BOOST_AUTO_TEST_CASE(run_what_they_are_sent_in_order_and_keep_none_of_it) {  // LW-1
  constexpr int sent = 100;
  nodes::system_config config{nodes::system_config::for_tests{}};
  caf::actor_system system{config};
  const auto worker = passes::spawn_lane_worker(system, c10::kCPU);
  std::vector<int> order;
  const auto held = std::make_shared<int>(0);  // all work except the last holds a reference
  std::promise<long> left;
  for (int i = 0; i < sent; ++i) caf::anon_send(worker, passes::posted_work{[&order, i, held] { order.push_back(i); }});
  const std::weak_ptr<int> seen = held;
  caf::anon_send(worker, passes::posted_work{[&left, seen] { left.set_value(seen.use_count()); }});
  BOOST_TEST(left.get_future().get() == 1);
  std::vector<int> expected(sent);
  std::iota(expected.begin(), expected.end(), 0);
  BOOST_TEST(order == expected, boost::test_tools::per_element());
  caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
}

BOOST_AUTO_TEST_SUITE_END()
