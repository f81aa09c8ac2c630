// SPDX-License-Identifier: BSD-3-Clause
// By which addresses nodes of separate hosts know each other, and what is said where they can't reach each other.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "actors/loopback_nodes.hpp"
#include "hosts/testbed.hpp"
#include "support/contains.hpp"

namespace {

using namespace std::chrono_literals;
using troupe::hosts::address_of;
using troupe::hosts::host;
using troupe::hosts::makes_hosts;
using troupe::hosts::program;
using troupe::hosts::testbed;
using troupe::test::contains;

using addresses = std::map<std::string, std::string>;

/// `troupe node` on this host, at port 4001 unless the options say otherwise.
program node_on(const host& on, const std::string& name, std::vector<std::string> options) {
  std::vector<std::string> arguments{"node", "--name", name};
  if (std::find(options.begin(), options.end(), "--port") == options.end()) options.insert(options.end(), {"--port", "4001"});
  arguments.insert(arguments.end(), options.begin(), options.end());
  return on.troupe(arguments);
}

std::string with_port(const std::string& host, const std::string& port = "4001") {
  return (contains(host, ":") ? "[" + host + "]" : host) + ":" + port;
}

/// The peers of the node at this port, by name, with the addresses at which the node reaches them.
addresses peers_of(const host& on, const std::string& port = "4001") {
  addresses result;
  const auto status = on.status("127.0.0.1:" + port);
  for (const auto& peer : status["peers"])
    if (peer["up"].get<bool>()) result[peer["name"].get<std::string>()] = peer["address"].get<std::string>();
  return result;
}

std::string text_of(const addresses& all) {
  std::string result;
  for (const auto& [name, address] : all) result += name + "@" + address + " ";
  return result;
}

void check_peers(const host& on, const addresses& expected, const std::string& port = "4001") {
  BOOST_TEST(text_of(peers_of(on, port)) == text_of(expected),
             "on " << on.name() << ": expected " << text_of(expected) << ", got " << text_of(peers_of(on, port)));
}

void check_says(const std::string& text, const std::vector<std::string>& parts) {
  for (const auto& part : parts) BOOST_TEST(contains(text, part), "expected '" << part << "' in: " << text);
}

/// The node has to end with status 1 and one line that has these parts.
void check_fails(program& node, const std::vector<std::string>& parts) {
  BOOST_TEST(node.how_it_ends() == "exited with 1");
  const auto said = node.line_with("troupe: ");
  check_says(said, parts);
}

const std::vector<std::string> everywhere{"--host", "0.0.0.0"};

std::vector<std::string> operator+(std::vector<std::string> all, const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hosts, *boost::unit_test::precondition(makes_hosts))

BOOST_AUTO_TEST_CASE(nodes_that_listen_on_all_addresses_know_each_other_by_those_of_their_hosts) {
  const testbed all({"h1", "h2", "h3"});
  const auto &h1 = all["h1"], &h2 = all["h2"], &h3 = all["h3"];
  auto a = node_on(h1, "a", everywhere);
  address_of(a);
  auto b = node_on(h2, "b", everywhere + std::vector<std::string>{"--join", "h1:4001"});
  address_of(b);
  auto c = node_on(h3, "c", std::vector<std::string>{"--host", "::", "--join", "h1:4001"});
  address_of(c);
  check_peers(h1, {{"b", with_port(h2.ipv4())}, {"c", with_port(h3.ipv4())}});
  check_peers(h2, {{"a", with_port(h1.ipv4())}, {"c", with_port(h3.ipv4())}});
  check_peers(h3, {{"a", with_port(h1.ipv4())}, {"b", with_port(h2.ipv4())}});
}

BOOST_AUTO_TEST_CASE(the_status_of_a_cluster_names_no_wildcard) {
  const testbed all({"h1", "h2", "h3"});
  auto a = node_on(all["h1"], "a", everywhere);
  address_of(a);
  auto b = node_on(all["h2"], "b", everywhere + std::vector<std::string>{"--join", "h1:4001"});
  address_of(b);
  auto asking = all["h3"].troupe({"status", "h1:4001", "--cluster", "--json"});
  BOOST_TEST(asking.how_it_ends() == "exited with 0");
  check_says(asking.text(), {"\"h1:4001\"", "\"" + with_port(all["h2"].ipv4()) + "\""});
  BOOST_TEST(!contains(asking.text(), "0.0.0.0"), asking.text());
}

BOOST_AUTO_TEST_CASE(a_stranger_on_the_host_of_a_node_that_joins_is_not_met) {
  const testbed all({"h1", "h2", "h3"});
  const auto &h1 = all["h1"], &h2 = all["h2"], &h3 = all["h3"];
  auto a = node_on(h1, "a", everywhere);
  address_of(a);
  auto b = node_on(h2, "b", everywhere + std::vector<std::string>{"--port", "4002", "--join", "h1:4001"});
  address_of(b);
  auto stranger = node_on(h3, "stranger", everywhere + std::vector<std::string>{"--port", "4002"});
  address_of(stranger);
  auto c = node_on(h3, "c", everywhere + std::vector<std::string>{"--port", "4003", "--join", "h1:4001"});
  address_of(c);
  check_peers(h3, {{"a", with_port(h1.ipv4())}, {"b", with_port(h2.ipv4(), "4002")}}, "4003");
  check_peers(h3, {}, "4002");
  check_peers(h2, {{"a", with_port(h1.ipv4())}, {"c", with_port(h3.ipv4(), "4003")}}, "4002");
}

BOOST_AUTO_TEST_CASE(a_second_node_of_a_name_is_refused_though_its_port_is_the_same_and_the_first_one_lives) {
  const testbed all({"h1", "h2", "h3"});
  auto a = node_on(all["h1"], "a", everywhere);
  address_of(a);
  auto first = node_on(all["h2"], "b", everywhere + std::vector<std::string>{"--join", "h1:4001"});
  address_of(first);
  auto second = node_on(all["h3"], "b", everywhere + std::vector<std::string>{"--join", "h1:4001"});
  check_fails(second, {"the name 'b' is taken by node 'b'", with_port(all["h2"].ipv4())});
  auto other = node_on(all["h3"], "a", everywhere + std::vector<std::string>{"--join", "h1:4001"});
  check_fails(other, {"the name 'a' is taken by node 'a'", with_port(all["h1"].ipv4())});
  check_peers(all["h1"], {{"b", with_port(all["h2"].ipv4())}});
  check_peers(all["h2"], {{"a", with_port(all["h1"].ipv4())}});
}

BOOST_AUTO_TEST_CASE(a_node_that_listens_on_loopback_cannot_join_another_host_and_both_say_why) {
  const testbed all({"h1", "h2"});
  auto a = node_on(all["h1"], "a", everywhere);
  address_of(a);
  auto b = node_on(all["h2"], "b", {"--join", "h1:4001"});
  const std::vector<std::string> parts{"'b'", "127.0.0.1:4001", "loopback", all["h2"].ipv4(), "--host 0.0.0.0", "--advertise"};
  check_fails(b, parts);
  check_says(a.line_with("refused node 'b'"), parts);
  check_peers(all["h1"], {});
}

BOOST_AUTO_TEST_CASE(a_node_that_listens_on_loopback_cannot_be_joined_from_another_host_and_the_error_names_the_option) {
  const testbed all({"h1", "h2"});
  auto a = node_on(all["h1"], "a", {});
  address_of(a);
  auto b = node_on(all["h2"], "b", everywhere + std::vector<std::string>{"--join", "h1:4001", "--join-wait", "1"});
  check_fails(b, {"no node listens at h1:4001", "beyond loopback (--host)"});
}

BOOST_AUTO_TEST_CASE(nodes_of_one_host_that_met_on_loopback_are_told_to_others_by_an_address_beyond) {
  const testbed all({"h1", "h2"});
  const auto &h1 = all["h1"], &h2 = all["h2"];
  auto a = node_on(h1, "a", everywhere);
  address_of(a);
  auto b = node_on(h1, "b", everywhere + std::vector<std::string>{"--port", "4002", "--join", "127.0.0.1:4001"});
  address_of(b);
  auto c = node_on(h2, "c", everywhere + std::vector<std::string>{"--join", "h1:4001"});
  address_of(c);
  check_peers(h2, {{"a", with_port(h1.ipv4())}, {"b", with_port(h1.ipv4(), "4002")}});
  check_peers(h1, {{"a", with_port(h1.ipv4())}, {"c", with_port(h2.ipv4())}}, "4002");
}

BOOST_AUTO_TEST_CASE(a_peer_on_loopback_is_not_told_to_other_hosts_and_the_log_says_so) {
  const testbed all({"h1", "h2"});
  const auto &h1 = all["h1"], &h2 = all["h2"];
  auto a = node_on(h1, "a", everywhere);
  address_of(a);
  auto b = node_on(h1, "b", {"--port", "4002", "--join", "127.0.0.1:4001"});
  address_of(b);
  auto stranger = node_on(h2, "stranger", {"--port", "4002"});  // at the address that b has on its own host
  address_of(stranger);
  auto c = node_on(h2, "c", everywhere + std::vector<std::string>{"--join", "h1:4001"});
  address_of(c);
  check_peers(h2, {{"a", with_port(h1.ipv4())}});
  check_peers(h2, {}, "4002");
  check_says(a.line_with("they can't meet"), {"warn", "'b'", "127.0.0.1:4002", h2.ipv4(), "--host", "--advertise"});
}

BOOST_AUTO_TEST_CASE(a_node_is_told_to_others_by_the_host_that_it_advertises) {
  const testbed all({"h1", "h2", "h3"});
  const auto &h1 = all["h1"], &h2 = all["h2"], &h3 = all["h3"];
  auto a = node_on(h1, "a", everywhere + std::vector<std::string>{"--advertise", "h1"});
  address_of(a);
  auto b = node_on(h2, "b", {"--host", h2.ipv6(), "--advertise", "h2-both", "--join", "h1:4001"});
  address_of(b);
  auto c = node_on(h3, "c", everywhere + std::vector<std::string>{"--join", "h1:4001"});
  address_of(c);
  check_peers(h1, {{"b", "h2-both:4001"}, {"c", with_port(h3.ipv4())}});
  check_peers(h3, {{"a", "h1:4001"}, {"b", "h2-both:4001"}});
}

BOOST_AUTO_TEST_CASE(host_names_ipv4_and_ipv6_mix) {
  const testbed all({"h1", "h2", "h3", "h4"});
  const auto &h1 = all["h1"], &h3 = all["h3"], &h4 = all["h4"];
  auto a = node_on(h1, "a", everywhere);
  address_of(a);
  // The first address of the name is an IPv6 address, where `a` does not listen.
  auto b = node_on(all["h2"], "b", {"--host", "h2-v6", "--join", "h1-both:4001"});
  address_of(b);
  auto c = node_on(h3, "c", {"--host", "::", "--join", "h2-v6:4001"});
  address_of(c);
  auto d = node_on(h4, "d", everywhere + std::vector<std::string>{"--join", "h3-v6:4001"});  // joins by IPv6, listens by IPv4
  address_of(d);
  check_peers(h1, {{"b", "h2-v6:4001"}, {"c", with_port(h3.ipv4())}, {"d", with_port(h4.ipv4())}});
  check_peers(h3, {{"a", with_port(h1.ipv4())}, {"b", "h2-v6:4001"}, {"d", with_port(h4.ipv4())}});
  check_peers(h4, {{"a", with_port(h1.ipv4())}, {"b", "h2-v6:4001"}, {"c", with_port(h3.ipv6())}});
}

BOOST_AUTO_TEST_CASE(a_host_with_two_networks_is_reached_by_the_peers_of_each) {
  testbed all({"h1", "h2", "h3"});
  const auto other = all.add_network({"h2", "h3"});
  all.unplug("h3");
  const auto &h1 = all["h1"], &h2 = all["h2"], &h3 = all["h3"];
  auto b = node_on(h2, "b", everywhere);
  address_of(b);
  auto c = node_on(h3, "c", everywhere + std::vector<std::string>{"--join", with_port(h2.ipv4(other))});
  address_of(c);
  auto a = node_on(h1, "a", everywhere + std::vector<std::string>{"--join", with_port(h2.ipv4())});
  address_of(a);
  check_peers(h2, {{"a", with_port(h1.ipv4())}, {"c", with_port(h3.ipv4(other))}});
  check_peers(h1, {{"b", with_port(h2.ipv4())}});
  check_peers(h3, {{"b", with_port(h2.ipv4(other))}});
}

BOOST_AUTO_TEST_CASE(a_name_without_an_address_and_a_host_without_a_node_are_told_apart) {
  const testbed all({"h1", "h2"});
  auto unknown = node_on(all["h1"], "a", everywhere + std::vector<std::string>{"--join", "h9:4001", "--join-wait", "1"});
  check_fails(unknown, {"the host name 'h9' has no address", "spelled right"});
  auto nobody = node_on(all["h1"], "a", everywhere + std::vector<std::string>{"--join", "h2:4001", "--join-wait", "1"});
  check_fails(nobody, {"no node listens at h2:4001", "is it started"});
  auto status = all["h1"].troupe({"status", "h9:4001"});
  check_fails(status, {"the host name 'h9' has no address"});
  auto listens = node_on(all["h1"], "a", {"--host", "h9"});
  check_fails(listens, {"can't listen on h9:4001", "the host name 'h9' has no address"});
  auto elsewhere = node_on(all["h1"], "a", {"--host", "h2"});
  check_fails(elsewhere, {"can't listen on h2:4001", "the address is not this machine's"});
}

BOOST_AUTO_TEST_CASE(a_host_name_that_is_loopback_on_its_own_host_is_no_address_for_others) {
  const testbed all({"h1", "h2"});
  auto a = node_on(all["h1"], "a", everywhere);
  address_of(a);
  auto b = node_on(all["h2"], "b", {"--host", "loopback", "--join", "h1:4001"});
  check_fails(b, {"127.0.1.1:4001", "--advertise"});
  check_says(b.line_with("the host name loopback"), {"the host name loopback has the address 127.0.1.1", "--host 0.0.0.0"});
}

BOOST_AUTO_TEST_CASE(nodes_meet_by_addresses_of_their_link_which_have_the_name_of_an_interface) {
  const testbed all({"h1", "h2"});
  std::map<std::string, std::string> link;
  for (const std::string name : {"h1", "h2"}) {
    const auto address = [&] {  // not before the host has found out that nobody else has the address
      auto listing = all[name].start("ip", {"-6", "-o", "addr", "show", "dev", "eth0", "scope", "link", "-tentative"});
      listing.how_it_ends();
      const auto text = listing.text();
      const auto begin = text.find("fe80:");
      return begin == std::string::npos ? std::string() : text.substr(begin, text.find('/', begin) - begin) + "%eth0";
    };
    BOOST_TEST_REQUIRE(troupe::test::becomes_true([&] { return !(link[name] = address()).empty(); }, 20s));
  }
  auto a = node_on(all["h1"], "a", {"--host", link["h1"]});
  BOOST_TEST(address_of(a) == "[" + link["h1"] + "]:4001");
  auto b = node_on(all["h2"], "b", {"--host", "::", "--join", "[" + link["h1"] + "]:4001"});
  address_of(b);
  check_peers(all["h2"], {{"a", with_port(link["h1"])}});
  BOOST_TEST(!a.line_with("peer 'b' is up: [" + link["h2"] + "]:4001").empty(), a.text());
}

BOOST_AUTO_TEST_CASE(a_killed_node_starts_again_on_its_port_at_once) {
  const testbed all({"h1", "h2"});
  auto a = node_on(all["h1"], "a", everywhere);
  address_of(a);
  for (int times = 0; times < 3; ++times) {
    auto b = node_on(all["h2"], "b", everywhere + std::vector<std::string>{"--join", "h1:4001"});
    address_of(b);
    check_peers(all["h1"], {{"b", with_port(all["h2"].ipv4())}});
    b.signal(SIGKILL);
    b.how_it_ends();
  }
}

BOOST_AUTO_TEST_CASE(a_training_takes_nodes_of_other_hosts_if_they_reach_its_driver) {
  const testbed all({"h1", "h2", "h3"});
  auto first = node_on(all["h1"], "stage1", everywhere + std::vector<std::string>{"--load", "charlm"});
  auto second = node_on(all["h2"], "stage2", everywhere + std::vector<std::string>{"--join", "h1:4001", "--load", "charlm"});
  address_of(first);
  address_of(second);
  const auto& driver = all["h3"];
  std::ofstream(driver.folder() / "cluster.json")
    << R"({"nodes": [{"name": "stage1", "host": "h1", "port": 4001}, {"name": "stage2", "host": "h2", "port": 4001}]})";
  const std::vector<std::string> train{"train",
                                       "--cluster",
                                       "cluster.json",
                                       "--out",
                                       driver.folder() / "out",
                                       "--steps",
                                       "2",
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
                                       "0"};
  auto unreachable = driver.troupe(train);
  check_fails(unreachable, {"'driver'", "loopback", driver.ipv4(), "--host 0.0.0.0"});
  auto training = driver.troupe(train + everywhere);
  BOOST_TEST(training.how_it_ends(60s) == "exited with 0", training.text());
  for (auto* stage : {&first, &second})
    BOOST_TEST(!stage->line_with("peer 'driver' is up: " + driver.ipv4()).empty(), stage->text());
}

BOOST_AUTO_TEST_SUITE_END()
