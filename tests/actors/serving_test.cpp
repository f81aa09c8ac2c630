// SPDX-License-Identifier: BSD-3-Clause
// Nodes that only serve, and what a node does before it joins others.
#include <boost/test/unit_test.hpp>

#include <future>
#include <string>

#include <troupe/actors/node.hpp>

#include "actors/loopback_nodes.hpp"

using troupe::test::loopback_settings;

BOOST_AUTO_TEST_SUITE(serving)

BOOST_AUTO_TEST_CASE(a_node_serves_until_the_peer_that_it_serves_is_gone) {
  troupe::node driver(loopback_settings("driver"));
  auto with = loopback_settings("stage");
  with.join = {"127.0.0.1:" + std::to_string(driver.port())};
  with.until_left = "driver";
  with.prepare = [](troupe::node& here) {
    here.functions().add("nothing", [](troupe::call_arguments&) { return troupe::call_reply{}; });
  };
  troupe::node stage(with);
  auto serves = std::async(std::launch::async, [&] { stage.serve(); });
  driver.peer("stage").call("nothing").get();
  driver.stop();
  serves.get();
  BOOST_CHECK_THROW(stage.status(), troupe::error);  // it has stopped
}

BOOST_AUTO_TEST_CASE(a_peer_that_left_before_the_node_serves_is_not_waited_for) {
  auto with = loopback_settings("stage");
  with.until_left = "driver";
  troupe::node stage(with);
  {
    troupe::node driver(loopback_settings("driver"));
    driver.join("127.0.0.1", stage.port());
    stage.peer("driver");
  }
  stage.serve();
}

BOOST_AUTO_TEST_CASE(another_thread_ends_the_service) {
  troupe::node stage(loopback_settings("stage"));
  auto serves = std::async(std::launch::async, [&] { stage.serve(); });
  stage.stop();
  serves.get();
}

BOOST_AUTO_TEST_CASE(functions_are_there_before_the_node_joins) {
  troupe::node driver(loopback_settings("driver"));
  auto with = loopback_settings("stage");
  with.join = {"127.0.0.1:" + std::to_string(driver.port())};
  std::size_t known = 1;
  with.prepare = [&](troupe::node& here) { known = here.peers().size(); };
  troupe::node stage(with);
  BOOST_TEST(known == 0u);
  BOOST_TEST(stage.peer("driver").name() == "driver");
}

BOOST_AUTO_TEST_SUITE_END()
