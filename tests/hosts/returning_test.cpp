// SPDX-License-Identifier: BSD-3-Clause
// Nodes of separate hosts that lose each other and meet again: a link that goes down, a cut that nobody notices, a frozen program,
// and a program that is killed and started again.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "actors/loopback_nodes.hpp"
#include "hosts/testbed.hpp"
#include "support/contains.hpp"

namespace {

using troupe::hosts::address_of;
using troupe::hosts::host;
using troupe::hosts::makes_hosts;
using troupe::hosts::program;
using troupe::hosts::testbed;
using troupe::test::becomes_true;
using troupe::test::contains;

/// The nodes a, b and c on the hosts h1, h2 and h3. Each knows the two others.
struct three_hosts {
  static constexpr const char* port = "4001";

  three_hosts() {
    for (auto* each : {&a, &b, &c}) address_of(*each);
    for (const auto* each : {"h1", "h2", "h3"}) BOOST_TEST_REQUIRE(comes_to_know(each, 2), a.text() << b.text() << c.text());
  }

  program start(const std::string& on, const std::string& name, const std::string& join) {
    std::vector<std::string> arguments{"node", "--name",         name,  "--host",         "0.0.0.0", "--port",
                                       port,   "--heartbeat-ms", "100", "--forget-after", "2"};
    if (!join.empty()) arguments.insert(arguments.end(), {"--join", join});
    return all[on].troupe(arguments);
  }

  std::size_t peers_of(const std::string& on) {
    const auto status = all[on].status(std::string("127.0.0.1:") + port);
    const auto& peers = status["peers"];
    return static_cast<std::size_t>(
      std::count_if(peers.begin(), peers.end(), [](const auto& peer) { return peer["up"].template get<bool>(); }));
  }
  bool comes_to_know(const std::string& on, std::size_t peers) {
    return becomes_true([&] { return peers_of(on) == peers; }, std::chrono::seconds(30));
  }

  bool is_told(program& node, const std::string& news) { return !node.line_with(news).empty(); }

  testbed all{{"h1", "h2", "h3"}};
  program a = start("h1", "a", "");
  program b = start("h2", "b", "h1:4001");
  program c = start("h3", "c", "h1:4001");
};

}  // namespace

BOOST_AUTO_TEST_SUITE(hosts, *boost::unit_test::precondition(makes_hosts))

BOOST_FIXTURE_TEST_SUITE(returning, three_hosts)

BOOST_AUTO_TEST_CASE(a_host_whose_link_was_down_is_up_again_for_all) {
  all.unplug("h2");
  BOOST_TEST(is_told(a, "peer 'b' is unreachable"));
  BOOST_TEST(is_told(c, "peer 'b' is unreachable"));
  BOOST_TEST(is_told(b, "peer 'a' is unreachable"));
  all.plug("h2");
  BOOST_TEST(is_told(a, "peer 'b' is up again"));
  BOOST_TEST(is_told(c, "peer 'b' is up again"));
  BOOST_TEST(is_told(b, "peer 'a' is up again"));
  BOOST_TEST(is_told(b, "peer 'c' is up again"));
  for (auto* node : {&a, &b, &c}) BOOST_TEST(!contains(node->text(), "is gone"), node->text());
}

BOOST_AUTO_TEST_CASE(two_hosts_that_lost_each_other_meet_again_and_a_third_notices_nothing) {
  all.cut("h1", "h2");
  BOOST_TEST(is_told(a, "peer 'b' is unreachable"));
  BOOST_TEST(is_told(b, "peer 'a' is unreachable"));
  all.mend("h1", "h2");
  BOOST_TEST(is_told(a, "peer 'b' is up again"));
  BOOST_TEST(is_told(b, "peer 'a' is up again"));
  BOOST_TEST(!contains(c.text(), "unreachable"), c.text());
}

BOOST_AUTO_TEST_CASE(two_sides_that_held_each_other_for_gone_meet_again) {
  all.cut("h1", "h2");
  all.cut("h3", "h2");
  for (auto* node : {&a, &c}) BOOST_TEST(is_told(*node, "peer 'b' is gone"));
  BOOST_TEST(is_told(b, "peer 'a' is gone"));
  BOOST_TEST(is_told(b, "peer 'c' is gone"));
  all.mend("h1", "h2");
  all.mend("h3", "h2");
  for (const auto* each : {"h1", "h2", "h3"}) BOOST_TEST(comes_to_know(each, 2));
}

BOOST_AUTO_TEST_CASE(a_frozen_program_that_goes_on_is_up_again) {
  b.signal(SIGSTOP);
  BOOST_TEST(is_told(a, "peer 'b' is unreachable"));
  BOOST_TEST(is_told(c, "peer 'b' is unreachable"));
  b.signal(SIGCONT);
  BOOST_TEST(is_told(a, "peer 'b' is up again"));
  BOOST_TEST(is_told(c, "peer 'b' is up again"));
}

BOOST_AUTO_TEST_CASE(a_program_that_was_frozen_until_it_was_gone_starts_over) {
  b.signal(SIGSTOP);
  BOOST_TEST(is_told(a, "peer 'b' is gone"));
  BOOST_TEST(is_told(c, "peer 'b' is gone"));
  b.signal(SIGCONT);
  for (const auto* each : {"h1", "h2", "h3"}) BOOST_TEST(comes_to_know(each, 2));
}

BOOST_AUTO_TEST_CASE(a_program_that_was_killed_and_started_again_is_met_without_being_asked) {
  b.signal(SIGKILL);
  BOOST_TEST(is_told(a, "peer 'b' is gone"));
  BOOST_TEST(is_told(c, "peer 'b' is gone"));
  auto again = start("h2", "b", "");  // joins nobody
  for (const auto* each : {"h1", "h2", "h3"}) BOOST_TEST(comes_to_know(each, 2));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()
