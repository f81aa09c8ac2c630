// SPDX-License-Identifier: BSD-3-Clause
// `troupe bench` measures a cluster on several hosts, with certificates, and finds a slow link and a host that is cut off.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "hosts/testbed.hpp"

namespace {

using troupe::hosts::address_of;
using troupe::hosts::makes_hosts;
using troupe::hosts::makes_slow_links;
using troupe::hosts::program;
using troupe::hosts::testbed;

/// The nodes a, b and c on h1, h2 and h3, with kits and the policy that docs/operations.md names for the command, and a kit for the command on
/// h1.
struct cluster {
  cluster() {
    certs({"init", "--cluster", "mine"});
    for (const std::string name : {"a", "b", "c", "operator"}) certs({"node", name});
    for (const auto& [name, host] : {std::pair{"a", "h1"}, {"b", "h2"}, {"c", "h3"}}) {
      std::filesystem::copy(all["h1"].folder() / (std::string(name) + ".pem"), all[host].folder() / "kit.pem");
      std::ofstream(all[host].folder() / "policy.json")
        << R"({"roles": {"member": {"modules": {"probe": ["*"]}, "status": true, "members": true}}})";
      std::vector<std::string> arguments{"node",    "--name",   name,          "--host", "0.0.0.0",
                                         "--port",  "4001",     "--log-level", "error",  "--certificates",
                                         "kit.pem", "--policy", "policy.json", "--load", "probe"};
      if (name != std::string("a")) arguments.insert(arguments.end(), {"--join", "h1:4001"});
      nodes.emplace_back(new program(all[host].troupe(arguments)));  // a program can't be moved
      address_of(*nodes.back());
    }
    std::ofstream(all["h1"].folder() / "cluster.json")
      << R"({"nodes": [{"name": "a", "host": "h1", "port": 4001}, {"name": "b", "host": "h2", "port": 4001},)"
         R"( {"name": "c", "host": "h3", "port": 4001}]})";
  }

  void certs(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "certs");
    auto run = all["h1"].troupe(arguments);
    BOOST_REQUIRE_MESSAGE(run.how_it_ends() == "exited with 0", run.text());
  }

  program bench(const std::string& seconds) {
    return all["h1"].troupe({"bench", "--cluster", "cluster.json", "--seconds", seconds, "--host", "0.0.0.0", "--certificates",
                             "operator.pem", "--json", "--log-level", "error"});
  }

  testbed all{{"h1", "h2", "h3"}};
  std::vector<std::unique_ptr<program>> nodes;
};

nlohmann::json json_of(program& bench) {
  const auto text = bench.text();
  const auto begin = text.find("\n{\n");
  BOOST_REQUIRE_MESSAGE(begin != std::string::npos, text);
  return nlohmann::json::parse(text.substr(begin));
}

nlohmann::json ways_of(program& bench) { return json_of(bench).at("ways"); }

}  // namespace

BOOST_AUTO_TEST_SUITE(hosts, *boost::unit_test::precondition(makes_hosts))

namespace {

/// The ways with node c have a problem, and all others have figures.
void check_that_c_is_away(program& run) {
  BOOST_TEST(run.how_it_ends(std::chrono::seconds(60)) == "exited with 1", run.text());
  for (const auto& way : ways_of(run)) {
    const bool with_c = way.at("from") == "c" || way.at("to") == "c";
    BOOST_TEST(way.contains("problem") == with_c, way.dump());
    if (!with_c) BOOST_TEST(way.at("transport") == "TCP", way.dump());
  }
}

}  // namespace

// The way to c is the third one: it begins 3 s after the first.
BOOST_FIXTURE_TEST_CASE(a_host_that_is_cut_off_meanwhile_is_told_and_the_rest_measured, cluster) {
  auto run = bench("1.5");
  BOOST_TEST(!run.line_with("1 of 9: operator -> a").empty(), run.text());
  all.cut("h1", "h3");
  all.cut("h2", "h3");
  check_that_c_is_away(run);
}

BOOST_FIXTURE_TEST_CASE(a_node_that_freezes_meanwhile_is_told_and_the_rest_measured, cluster) {
  auto run = bench("1.5");
  BOOST_TEST(!run.line_with("1 of 9: operator -> a").empty(), run.text());
  nodes.back()->signal(SIGSTOP);
  check_that_c_is_away(run);
}

BOOST_AUTO_TEST_SUITE(slow_links, *boost::unit_test::label("slow_links") * boost::unit_test::precondition(makes_slow_links))

BOOST_FIXTURE_TEST_CASE(a_slow_link_shows_in_the_ways_that_use_it, cluster) {
  all.limit_rate("h3", "100mbit");
  auto run = bench("1");
  BOOST_TEST(run.how_it_ends(std::chrono::seconds(90)) == "exited with 0", run.text());
  const auto found = json_of(run);
  BOOST_TEST(found.at("remarks").dump().find("c -> a carries ") != std::string::npos, found.at("remarks").dump());
  BOOST_TEST(found.at("remarks").dump().find("a -> b") == std::string::npos, found.at("remarks").dump());
  for (const auto& way : found.at("ways")) {
    const auto mib_per_s = way.at("mib_per_s").get<double>();
    if (way.at("from") == "c")
      BOOST_TEST(mib_per_s < 13, way.dump());
    else if (way.at("to") != "c")
      BOOST_TEST(mib_per_s > 20, way.dump());
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()
