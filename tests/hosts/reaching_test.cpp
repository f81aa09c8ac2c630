// SPDX-License-Identifier: BSD-3-Clause
// Joins and calls over networks that lose packets, addresses that answer nothing, and pairs of hosts that do not reach each other.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "actors/loopback_nodes.hpp"
#include "hosts/calling_program.hpp"
#include "hosts/testbed.hpp"
#include "support/contains.hpp"

using namespace std::chrono_literals;
using namespace troupe::hosts;
using troupe::test::becomes_true;
using troupe::test::contains;

namespace {

namespace fs = std::filesystem;
using words = std::vector<std::string>;
using clock = std::chrono::steady_clock;

program node_on(const host& on, const std::string& name, const words& more = {}) {
  words arguments{"node", "--name", name, "--host", "::", "--port", "4001"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return on.troupe(arguments);
}

/// Hosts of which two have a kit each.
struct proven_hosts {
  proven_hosts() {
    for (const words& command : {words{"certs", "init"}, words{"certs", "node", "a"}, words{"certs", "node", "b"}})
      BOOST_TEST_REQUIRE(all["h1"].troupe(command).how_it_ends() == "exited with 0");
    fs::copy_file(all["h1"].folder() / "b.pem", all["h2"].folder() / "b.pem");
    node.reset(new program(node_on(all["h1"], "a", {"--certificates", "a.pem"})));
    address_of(*node);
  }

  program join() { return node_on(all["h2"], "b", {"--certificates", "b.pem", "--join", "h1:4001"}); }

  testbed all{{"h1", "h2", "h3"}};
  std::unique_ptr<program> node;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(hosts, *boost::unit_test::precondition(makes_hosts))

// ME-3
BOOST_FIXTURE_TEST_CASE(a_join_whose_first_bytes_are_lost_is_tried_again, proven_hosts) {
  all.lose_bytes("h2", "h1");
  auto b = join();
  BOOST_TEST(!node->line_with("it has not begun the handshake of TLS").empty(), node->text());  // and tells b so
  all.keep_bytes("h2", "h1");
  address_of(b);
  BOOST_TEST(!b.line_with("peer 'a' is up").empty(), b.text());
}

// ME-3
BOOST_FIXTURE_TEST_CASE(a_join_whose_answers_are_lost_is_tried_again, proven_hosts) {
  all.lose_bytes("h1", "h2");
  auto b = join();
  BOOST_TEST(!node->line_with("its handshake was not over").empty(), node->text());
  all.keep_bytes("h1", "h2");
  address_of(b);
  BOOST_TEST(!b.line_with("peer 'a' is up").empty(), b.text());
}

BOOST_AUTO_TEST_CASE(a_name_whose_first_address_answers_nothing_is_reached_at_its_second) {  // AR-1
  testbed all({"h1", "h2"});
  auto a = node_on(all["h1"], "a", {"--load", "charlm"});
  address_of(a);
  all.break_ipv6("h1");
  const auto begun = clock::now();
  auto status = all["h2"].troupe({"status", "h1-both:4001", "--deadline-ms", "3000"});
  BOOST_TEST(status.how_it_ends() == "exited with 0", status.text());
  auto b = node_on(all["h2"], "b", {"--join", "h1-both:4001", "--join-wait", "5", "--load", "charlm"});
  address_of(b);
  auto training = all["h2"].troupe({"train",
                                    "--join",
                                    "h1-both:4001",
                                    "--host",
                                    "0.0.0.0",
                                    "--nodes",
                                    "a,b",
                                    "--steps",
                                    "1",
                                    "--blocks",
                                    "2",
                                    "--width",
                                    "16",
                                    "--heads",
                                    "2",
                                    "--context",
                                    "16",
                                    "--batch",
                                    "8",
                                    "--micro-batches",
                                    "4",
                                    "--single-process-seconds",
                                    "0",
                                    "--sample",
                                    "0",
                                    "--out",
                                    "out"});
  BOOST_TEST(training.how_it_ends(60s) == "exited with 0", training.text());
  BOOST_TEST((clock::now() - begun < 40s));
}

BOOST_AUTO_TEST_CASE(two_nodes_that_do_not_reach_each_other_say_so_and_calls_between_them_name_the_reason) {  // MT-10, PD-6
  testbed all({"h1", "h2", "h3"});
  all.cut("h1", "h2");
  auto c = calling_node(all["h3"], "c", "0.0.0.0", "", {});
  BOOST_REQUIRE(!c.line_with("listens at").empty());
  auto b = calling_node(all["h2"], "b", "0.0.0.0", "h3:4001", {"c"});
  BOOST_REQUIRE(!b.line_with("b called c").empty());
  auto a = calling_node(all["h1"], "a", "0.0.0.0", "h3:4001", {"c"});
  BOOST_REQUIRE(!a.line_with("a called c").empty());
  const auto warning = a.line_with("can't connect to node 'b'");
  BOOST_TEST(contains(warning, " warn "), a.text());
  BOOST_TEST(contains(warning, all["h2"].ipv4() + ":4001"), a.text());
  BOOST_TEST(!b.line_with("can't connect to node 'a'").empty(), b.text());
  const auto peers = all["h1"].status("127.0.0.1:4001")["peers"];
  BOOST_TEST_REQUIRE(peers.size() == 2U);
  const auto& of_b = peers[peers[0]["name"] == "b" ? 0 : 1];
  BOOST_TEST(of_b["state"] == "not reached from here", of_b.dump());
  BOOST_TEST(contains(of_b["reason"].get<std::string>(), all["h2"].ipv4()), of_b.dump());
  auto cluster = all["h3"].troupe({"status", "127.0.0.1:4001", "--cluster"});
  BOOST_TEST(cluster.how_it_ends() == "exited with 0", cluster.text());
  for (const auto* part : {"a does not reach b: ", "b does not reach a: "})
    BOOST_TEST(contains(cluster.text(), part), cluster.text());

  // The driver has 8 s for a call of a, which calls b in turn.
  auto driver = calling_node(all["h3"], "driver", "0.0.0.0", "h3:4001", {"a>b"}, {"--port", "4002", "--deadline-ms", "8000"});
  const auto failure = driver.line_with("calling_node: ");
  for (const auto& part : words{"'b'", "node 'a'", "can't connect to node 'b'", all["h2"].ipv4() + ":4001"})
    BOOST_TEST(contains(failure, part), driver.text());

  all.mend("h1", "h2");
  BOOST_TEST(!a.line_with("peer 'b' is up").empty(), a.text());
  BOOST_TEST(becomes_true([&] { return !contains(all["h1"].status("127.0.0.1:4001").dump(), "not reached"); }, 10s));
}

BOOST_AUTO_TEST_SUITE_END()
