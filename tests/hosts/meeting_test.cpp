// SPDX-License-Identifier: BSD-3-Clause
// Nodes of separate hosts meet and call each other.
#include <array>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "hosts/calling_program.hpp"
#include "hosts/testbed.hpp"

namespace {

using troupe::apps::test::program_under_test;
using troupe::hosts::address_of;
using troupe::hosts::calling_node;
using troupe::hosts::host;
using troupe::hosts::makes_hosts;
using troupe::hosts::makes_slow_links;
using troupe::hosts::program;
using troupe::hosts::testbed;

void check_calls(program& node, const std::string& name, const std::vector<std::string>& peers) {
  for (const auto& peer : peers)
    BOOST_TEST(!node.line_with(name + " called " + peer).empty(),
               "no call of " << peer << "; " << name << " said: " << node.text());
}

/// Starts the nodes a, b and c on the hosts h1, h2 and h3, which listen at these addresses. Each node has to call both others.
void check_meeting(const testbed& all, const std::array<std::string, 3>& listen_at) {
  auto a = calling_node(all["h1"], "a", listen_at[0], "", {"b", "c"});
  BOOST_REQUIRE(!a.line_with("listens at").empty());
  auto b = calling_node(all["h2"], "b", listen_at[1], "h1:4001", {"a", "c"});
  check_calls(b, "b", {"a"});
  auto c = calling_node(all["h3"], "c", listen_at[2], "h1:4001", {"a", "b"});
  check_calls(c, "c", {"a", "b"});
  check_calls(b, "b", {"c"});
  check_calls(a, "a", {"b", "c"});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hosts, *boost::unit_test::precondition(makes_hosts))

BOOST_AUTO_TEST_CASE(three_nodes_that_listen_on_addresses_of_their_hosts_meet_and_call_each_other) {
  const testbed all({"h1", "h2", "h3"});
  check_meeting(all, {all["h1"].ipv4(), all["h2"].ipv6(), "h3"});
}

BOOST_AUTO_TEST_CASE(three_nodes_that_listen_on_all_addresses_meet_and_call_each_other) {
  for (const std::string everywhere : {"0.0.0.0", "::"}) {
    const testbed all({"h1", "h2", "h3"});
    check_meeting(all, {everywhere, everywhere, everywhere});
  }
}

BOOST_AUTO_TEST_CASE(a_node_with_few_descriptors_serves_though_silent_connections_take_them) {  // NH-2
  const testbed all({"h1", "h2", "h3"});
  const std::string few = R"(ulimit -n 256 && exec "$0" node --name a --host 0.0.0.0 --port 4001 --log-level warn --insecure)";
  auto a = all["h1"].start("sh", {"-c", few, program_under_test()});
  address_of(a);
  const std::string many = "for i in $(seq 300); do exec {end}<>/dev/tcp/h1/4001; done; echo all made; exec tail -f /dev/null";
  auto crowd = all["h2"].start("bash", {"-c", many});
  BOOST_REQUIRE(!crowd.line_with("all made").empty());
  BOOST_TEST(all["h3"].status("h1:4001").at("name") == "a");
  auto b = calling_node(all["h3"], "b", "0.0.0.0", "h1:4001", {});
  BOOST_TEST(!b.line_with("peer 'a' is up").empty(), b.text());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(slow_links, *boost::unit_test::label("slow_links") * boost::unit_test::precondition(makes_slow_links))

BOOST_AUTO_TEST_CASE(a_peer_is_up_while_a_large_message_fills_the_link) {
  struct load {
    std::string rate;
    std::string tensors;  // of 300 KiB, in one message
  };
  for (const auto& [rate, tensors] : {load{"1gbit", "400"}, load{"100mbit", "100"}}) {
    testbed all({"h1", "h2"});
    for (const auto* each : {"h1", "h2"}) all.limit_rate(each, rate);
    auto a = calling_node(all["h1"], "a", "0.0.0.0", "", {});
    BOOST_REQUIRE(!a.line_with("listens at").empty());
    auto b = calling_node(all["h2"], "b", "0.0.0.0", "h1:4001", {"a*" + tensors});
    check_calls(b, "b", {"a"});
    for (auto* each : {&a, &b}) BOOST_TEST(each->text().find("unreachable") == std::string::npos, rate << ": " << each->text());
  }
}

BOOST_AUTO_TEST_SUITE_END()
