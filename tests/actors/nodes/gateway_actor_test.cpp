// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/gateway_actor.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <vector>

#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/node.hpp>
#include <troupe/actors/node_access.hpp>

#include "actors/membership_fixture.hpp"
#include "support/contains.hpp"

using namespace troupe;

namespace {

/// A cluster, and a node in it that has no network: its parts are what a gateway needs.
struct stage {
  ~stage() {
    for (const auto& gateway : gateways) caf::anon_send_exit(gateway, caf::exit_reason::user_shutdown);
    home.stop();
    all.run();
  }

  caf::strong_actor_ptr spawn(const contracts::membership_actor& membership) {
    const auto gateway = caf::actor_cast<caf::strong_actor_ptr>(nodes::spawn_gateway(parts_of(home), membership));
    gateways.push_back(caf::actor_cast<caf::actor>(gateway));
    return gateway;
  }

  test::fake_cluster all;
  node home{[] {
              settings options;
              options.name = "home";
              return options;
            }(),
            all.system};
  std::vector<caf::actor> gateways;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(gateway)

// GW-17
BOOST_AUTO_TEST_CASE(answers_a_greeting_that_came_before_the_node_listened) {
  stage play;
  auto& all = play.all;
  auto& starting = all.start("starting", 1, 4001, 0, false);
  const auto gateway = play.spawn(starting.membership);
  all.ports[4001] = gateway;  // as after publish(): others reach the gateway, and its membership does not listen yet
  auto& b = all.start("b", 2, 4002);
  const auto joined = all.join(b, 4001);
  const auto beaten =
    all.ask<heartbeat_seen>(caf::actor_cast<contracts::membership_host>(gateway), heartbeat{node_id{3}, 1, {}});
  BOOST_TEST(joined->count == 0);
  BOOST_TEST_REQUIRE(beaten->failure.has_value());
  BOOST_TEST((beaten->failure->code() == errc::unknown_peer));
  caf::anon_send(starting.membership, support::listen_atom::value, gateway, std::uint16_t{4001});
  all.run();
  BOOST_TEST_REQUIRE(joined->value.has_value());
  BOOST_TEST(joined->value->name == "starting");
}

// GW-17
BOOST_AUTO_TEST_CASE(without_a_network_answers_greetings_and_heartbeats_with_an_error) {
  stage play;
  const auto gateway = play.spawn({});
  const auto asked = caf::actor_cast<contracts::membership_host>(gateway);
  const auto greeted = play.all.ask<welcome>(asked, hello{}, gateway);
  BOOST_TEST_REQUIRE(greeted->failure.has_value());
  BOOST_TEST(test::contains(greeted->failure->what(), "node 'home' has no network"));
  BOOST_TEST((play.all.ask<heartbeat_seen>(asked, heartbeat{})->failure.has_value()));
  BOOST_TEST((play.all.ask<caf::unit_t>(asked, farewell{})->failure.has_value()));
  BOOST_TEST((play.all.ask<caf::unit_t>(asked, gossip{})->failure.has_value()));
}

BOOST_AUTO_TEST_SUITE_END()
