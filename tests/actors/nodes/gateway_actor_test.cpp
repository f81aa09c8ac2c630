// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/gateway_actor.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <utility>
#include <vector>

#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/network/handing_over.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/actors/node_access.hpp>

#include "actors/membership_fixture.hpp"
#include "support/contains.hpp"

using namespace troupe;

namespace {

/// A cluster, and a node in it that has no network: its services are what a gateway needs.
struct stage {
  ~stage() {
    for (const auto& gateway : gateways) caf::anon_send_exit(gateway, caf::exit_reason::user_shutdown);
    home.stop();
    all.run();
  }

  caf::strong_actor_ptr spawn(const contracts::membership_actor& membership) {
    const auto gateway = caf::actor_cast<caf::strong_actor_ptr>(nodes::spawn_gateway(services_of(home), membership));
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

/// A node "driver" as the node "home" sees it: `joined` has the contexts in which "home" says that it has a part, `reports` counts what
/// it says about passes. The membership of "home" answers a search for the driver when the test says so.
struct stage_with_driver : stage {
  using search = caf::typed_response_promise<contracts::peer_up>;

  stage_with_driver() {
    face = all.system.spawn([this](caf::event_based_actor* self) -> caf::behavior {
      self->set_default_handler(caf::drop);
      return {[this](const context_joined& news) { joined.push_back(news.context); },
              [this](const participant_quiet&) { ++reports; }, [this](const participant_failed&) { ++reports; }};
    });
    asked = all.system.spawn([this](caf::event_based_actor* self) -> caf::behavior {
      return {[this, self](support::find_atom, node_id, std::int64_t) -> caf::result<contracts::peer_up> {
                searches.push_back(self->make_response_promise<contracts::peer_up>());
                return searches.back();
              },
              [this](contracts::peer_up& found) { searches.back().deliver(std::move(found)); },
              [this](support::close_atom) { searches.back().deliver(make_error(errc::unknown_peer, "the test says so")); }};
    });
    membership = caf::actor_cast<contracts::membership_actor>(asked);
    services_of(home).actors.membership = membership;
    gateway = caf::actor_cast<contracts::membership_host>(spawn(membership));
    gateways.insert(gateways.end(), {face, asked});
    home.functions().add("twice", [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0) * 2}}; });
  }
  ~stage_with_driver() { services_of(home).actors.membership = contracts::membership_actor{}; }

  contracts::peer_up up(std::uint64_t period) {
    return {driver, caf::actor_cast<caf::strong_actor_ptr>(face), period > 1, period};
  }
  void lose(bool is_gone) {
    caf::anon_send(caf::actor_cast<caf::actor>(gateway), up(1));
    caf::anon_send(caf::actor_cast<caf::actor>(gateway), contracts::peer_down{driver, "the test says so", is_gone, 1});
    all.run();
  }
  template <class Answer>
  void answer_search(Answer what) {
    BOOST_TEST_REQUIRE(searches.size() == 1u);
    caf::anon_send(asked, std::move(what));
    all.run();
    searches.clear();
  }
  call_request call() const {
    call_request result;
    result.what = requests::function{"twice"};
    result.payload.context = {driver.id, 1};
    result.payload.message = {1, driver.id};
    result.payload.tensors = {at::ones({2})};
    return result;
  }

  const member driver{"driver", node_id{7}, "127.0.0.1", 4007};
  caf::actor face;
  caf::actor asked;
  contracts::membership_actor membership;
  contracts::membership_host gateway;
  std::vector<search> searches;
  std::vector<context_id> joined;
  int reports = 0;
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

// GW-5, GW-19: the driver holds "home" for up, and "home" does not hold the driver for up yet.
BOOST_AUTO_TEST_CASE(a_call_of_a_node_that_is_not_up_again_here_waits_until_it_is) {
  for (const bool is_gone : {false, true}) {
    stage_with_driver play;
    play.lose(is_gone);
    const auto answered = play.all.ask<call_result>(play.gateway, play.call());
    BOOST_TEST(answered->count == 0);
    BOOST_TEST(services_of(play.home).contexts.all().empty());
    play.answer_search(play.up(2));
    BOOST_TEST(answered->value.has_value());
    BOOST_TEST(services_of(play.home).contexts.all().size() == 1u);
    // The driver releases the context here if it has released the context meanwhile.
    BOOST_TEST((play.joined == std::vector<context_id>{play.call().payload.context}));
  }
}

// GW-5, GW-19
BOOST_AUTO_TEST_CASE(a_call_of_a_node_that_does_not_come_up_again_is_refused) {
  stage_with_driver play;
  play.lose(false);
  const auto answered = play.all.ask<call_result>(play.gateway, play.call());
  play.answer_search(support::close_atom::value);
  BOOST_TEST_REQUIRE(answered->failure.has_value());
  BOOST_TEST((answered->failure->code() == errc::unknown_context));
  BOOST_TEST(services_of(play.home).contexts.all().empty());
}

// GW-19
BOOST_AUTO_TEST_CASE(a_report_waits_for_an_initiator_that_is_not_up_again_here) {
  stage_with_driver play;
  play.all.ask<call_result>(play.gateway, play.call());
  play.answer_search(play.up(2));
  caf::anon_send(caf::actor_cast<caf::actor>(play.gateway), contracts::peer_down{play.driver, "the test says so", false, 2});
  play.all.run();
  propagate_gradients unknown;  // gradients for tensors that "home" did not send fail the pass
  unknown.context = play.call().payload.context;
  unknown.pass = pass_number{1};
  unknown.message = {99, services_of(play.home).self.id()};
  unknown.gradients = {at::ones({2})};
  unknown.from = "driver";
  caf::anon_send(caf::actor_cast<caf::actor>(play.gateway), std::move(unknown));
  play.all.run();
  BOOST_TEST(play.reports == 0);
  play.answer_search(play.up(3));
  BOOST_TEST(play.reports == 1);
}

BOOST_AUTO_TEST_CASE(handles_at_once_what_a_connection_brings_unless_a_message_waits) {
  stage_with_driver play;
  const auto& known = services_of(play.home).directory;
  const auto gateway = caf::actor_cast<caf::actor>(play.gateway);
  play.all.run();  // from now on the gateway waits for messages
  caf::anon_send(gateway, play.up(1));
  BOOST_TEST(!known.gateway(play.driver.id));
  play.all.run();
  BOOST_TEST(!!known.gateway(play.driver.id));
  const network::handing_over now(true);
  caf::anon_send(gateway, contracts::peer_down{play.driver, "the test says so", false, 1});
  BOOST_TEST(!known.gateway(play.driver.id));
  {
    const network::handing_over over(false);
    caf::anon_send(gateway, play.up(2));  // waits
  }
  caf::anon_send(gateway, contracts::peer_down{play.driver, "the test says so", false, 2});
  play.all.run();
  BOOST_TEST(!known.gateway(play.driver.id));
}

BOOST_AUTO_TEST_SUITE_END()
