// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/membership.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <utility>

#include <boost/algorithm/string/join.hpp>
#include <boost/test/unit_test.hpp>
#include <caf/io/abstract_broker.hpp>

#include "actors/membership_fixture.hpp"
#include "support/contains.hpp"

namespace {

using namespace troupe;
using test::fake_cluster;

constexpr auto ms = fake_cluster::ms;
constexpr auto interval = fake_cluster::interval;
constexpr auto forget_after = fake_cluster::forget_after;
constexpr auto longest_pause = fake_cluster::longest_pause;

using names = std::vector<std::string>;

using troupe::test::contains;

template <class T>
bool failed(const std::shared_ptr<test::answer<T>>& answer, errc code, const std::string& part) {
  BOOST_TEST_REQUIRE(answer->count == 1);
  BOOST_TEST_REQUIRE(answer->failure.has_value());
  BOOST_TEST(to_text(answer->failure->code()) == to_text(code));
  BOOST_TEST(contains(answer->failure->what(), part), answer->failure->what());
  return answer->failure->code() == code;
}

template <class T>
bool pending(const std::shared_ptr<test::answer<T>>& answer) {
  return answer->count == 0;
}

}  // namespace

#define CHECK_NAMES(left, ...) BOOST_TEST((left) == (names{__VA_ARGS__}), boost::test_tools::per_element())

BOOST_AUTO_TEST_CASE(the_membership_of_these_tests_is_a_broker_that_runs_when_the_test_says_so) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  const auto* actor = caf::actor_cast<caf::abstract_actor*>(a.membership);
  BOOST_TEST(dynamic_cast<const caf::io::abstract_broker*>(actor) != nullptr);
  bool answered = false;
  all.system.spawn([&](caf::event_based_actor* self) {
    self->request(a.membership, caf::infinite, troupe::support::list_atom::value).then([&](const std::vector<member>&) {
      answered = true;
    });
  });
  while (all.scheduler.try_run_once()) continue;
  BOOST_TEST(!answered);
  BOOST_TEST(all.multiplexer.try_exec_runnable());
  while (all.scheduler.try_run_once()) continue;
  BOOST_TEST(answered);
}

BOOST_AUTO_TEST_SUITE(joining)

BOOST_AUTO_TEST_CASE(makes_both_sides_know_each_other) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  auto joined = all.join(b, 4001);
  BOOST_TEST_REQUIRE(joined->value.has_value());
  BOOST_TEST(joined->value->name == "a");
  BOOST_TEST((joined->value->id == node_id{1}));
  BOOST_TEST(joined->value->port == 4001);
  CHECK_NAMES(all.peers(a), "b");
  CHECK_NAMES(all.peers(b), "a");
  CHECK_NAMES(a.news, "up b");
  CHECK_NAMES(b.news, "up a");
}

BOOST_AUTO_TEST_CASE(tells_both_sides_the_devices_of_the_other) {
  fake_cluster all;
  const c10::Device cpu(c10::kCPU);
  const std::vector<c10::Device> of_a{cpu, c10::Device(c10::kCUDA, 0)};
  const std::vector<c10::Device> of_b{cpu};
  auto& a = all.start("a", 1, 4001, 0, true, "127.0.0.1", of_a);
  auto& b = all.start("b", 2, 4002, 0, true, "127.0.0.1", of_b);
  auto& old = all.start("old", 3, 4003);  // tells none
  BOOST_CHECK(all.join(b, 4001)->value.value().devices == of_a);
  all.join(old, 4001);
  BOOST_CHECK(all.find(a, "b", 0)->value.value().who.devices == of_b);
  BOOST_CHECK(all.find(b, "a", 0)->value.value().who.devices == of_a);
  BOOST_TEST(all.find(a, "old", 0)->value.value().who.devices.empty());
}

BOOST_AUTO_TEST_CASE(one_node_of_a_cluster_joins_them_all) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  auto& c = all.start("c", 3, 4003);
  auto& d = all.start("d", 4, 4004);
  all.join(b, 4001);
  all.join(d, 4003);
  auto joined = all.join(c, 4002);  // two pairs grow together
  BOOST_TEST_REQUIRE(joined->value.has_value());
  BOOST_TEST(joined->value->name == "b");
  CHECK_NAMES(all.peers(c), "a", "b", "d");
  for (auto* node : {&a, &b, &d}) BOOST_TEST(all.peers(*node).size() == 3, node->who.name);
}

BOOST_AUTO_TEST_CASE(two_nodes_makes_them_know_each_other) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  auto& c = all.start("c", 3, 4003);
  all.join(a, 4002);
  all.join(a, 4003);
  CHECK_NAMES(all.peers(b), "a", "c");
  CHECK_NAMES(all.peers(c), "a", "b");
}

BOOST_AUTO_TEST_CASE(two_nodes_of_which_one_has_left_looks_for_the_other_alone) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  auto& c = all.start("c", 3, 4003);
  all.join(a, 4002);
  *b.mute = true;
  const auto dialled = all.dialled;
  auto joined = all.join(a, 4003);
  BOOST_TEST(joined->value.has_value());  // does not wait for those two to meet
  CHECK_NAMES(c.news, "up a");
  all.pass(20'000 * ms);
  CHECK_NAMES(all.peers(a), "c");
  BOOST_TEST(all.dialled - dialled < 40);  // three tries for each greeting, which comes every 2 s
}

// With certificates a second process with a node's kit may greet while the node's own greeting waits.
BOOST_AUTO_TEST_CASE(a_node_whose_id_was_given_up_meanwhile_greets_again) {
  for (const bool at_the_end_that_calls : {false, true}) {
    fake_cluster all;
    auto& a = all.start("a", 1, 4001);
    auto& b = all.start("b", 2, 4002);
    int refusals = 2;
    std::vector<node_id> asked;
    all.accept = [&](node_id who) {
      asked.push_back(who);
      return who != node_id{at_the_end_that_calls ? 1U : 2U} || refusals-- <= 0;
    };
    auto joined = all.join(b, 4001);
    all.pass(2'000 * ms);
    BOOST_TEST_REQUIRE(joined->value.has_value());
    BOOST_TEST(joined->value->name == "a");
    CHECK_NAMES(all.peers(a), "b");
    CHECK_NAMES(all.peers(b), "a");
    CHECK_NAMES(b.news, "up a");
    BOOST_TEST(refusals < 0);
    BOOST_TEST(asked.size() >= 4U);
  }
}

BOOST_AUTO_TEST_CASE(a_node_twice_or_from_both_sides_is_one_peer) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  auto first = all.join(b, 4001);
  auto second = all.join(b, 4001);
  auto back = all.join(a, 4002);
  BOOST_TEST((first->value && second->value && back->value));
  CHECK_NAMES(a.news, "up b");
  CHECK_NAMES(b.news, "up a");
}

BOOST_AUTO_TEST_CASE(itself_is_refused) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  failed(all.join(a, 4001), errc::refused, "can't join itself");
  BOOST_TEST(a.news.empty());
}

BOOST_AUTO_TEST_CASE(waits_until_the_node_listens) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001, 0, false);
  auto& b = all.start("b", 2, 4002, 0, false);
  auto joined = all.join(b, 4001);
  BOOST_TEST(pending(joined));
  BOOST_TEST(all.dialled == 0);
  caf::anon_send(b.membership, support::listen_atom::value, all.ports[4002], std::uint16_t{4002});
  all.run();
  BOOST_TEST(all.dialled == 1);
  BOOST_TEST(pending(joined));  // greeted, but the other does not know yet where it listens
  caf::anon_send(a.membership, support::listen_atom::value, all.ports[4001], std::uint16_t{4001});
  all.run();
  BOOST_TEST_REQUIRE(joined->value.has_value());
  BOOST_TEST(joined->value->port == 4001);
}

// ME-3
BOOST_AUTO_TEST_CASE(tries_again_while_nobody_listens_yet) {
  fake_cluster all;
  auto& b = all.start("b", 2, 4002);
  auto joined = all.join(b, 4001);
  all.pass(500 * ms);
  BOOST_TEST(pending(joined));
  all.start("a", 1, 4001);
  all.pass(200 * ms);
  BOOST_TEST_REQUIRE(joined->value.has_value());
  BOOST_TEST(joined->value->name == "a");
}

// ME-3
BOOST_AUTO_TEST_CASE(a_port_where_nobody_listens_fails_with_the_address) {
  fake_cluster all;
  auto& b = all.start("b", 2, 4002);
  auto patient = all.join(b, 4001, 60'000 * ms);
  auto hasty = all.join(b, 4001, 300 * ms);
  all.pass(300 * ms);
  failed(hasty, errc::unknown_peer, "127.0.0.1:4001");
  BOOST_TEST(pending(patient));
  all.pass(700 * ms);
  failed(patient, errc::unknown_peer, "no node listens at 127.0.0.1:4001");
}

// ME-3
BOOST_AUTO_TEST_CASE(is_answered_by_its_deadline_whoever_stays_mute) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  auto connecting = all.join(b, all.mute_port, 400 * ms);
  *a.mute = true;
  auto greeting = all.join(b, 4001, 400 * ms);
  all.pass(395 * ms);
  BOOST_TEST(pending(connecting));
  BOOST_TEST(pending(greeting));
  all.pass(5 * ms);
  failed(connecting, errc::deadline_passed, "no answer from 127.0.0.1:9999 within 400 ms");
  failed(greeting, errc::deadline_passed, "no answer to the greeting from 127.0.0.1:4001 within 400 ms");
}

// ME-3
BOOST_AUTO_TEST_CASE(tries_again_until_the_deadline_whatever_cut_the_handshake) {
  fake_cluster all;
  all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.problems[4001] = caf::make_error(caf::sec::disconnect_during_handshake, std::string("TLS failed"));
  auto joined = all.join(b, 4001, 20'000 * ms);
  auto hasty = all.join(b, 4001, 2'000 * ms);
  all.pass(10'000 * ms);  // longer than an address is tried where no program listens
  BOOST_TEST(pending(joined));
  failed(hasty, errc::unknown_peer,
         "the program at 127.0.0.1:4001 has ended the connection before a node answered: TLS failed");
  all.problems.clear();
  all.pass(1'100 * ms);
  BOOST_TEST(joined->value.has_value());
}

// ME-3
BOOST_AUTO_TEST_CASE(tries_a_name_without_an_address_as_long_as_an_address_where_no_program_listens) {
  fake_cluster all;
  auto& b = all.start("b", 2, 4002);
  all.problems[4001] = make_error(errc::misuse, "the host name 'x' has no address");
  auto joined = all.join(b, 4001);
  all.pass(800 * ms);
  BOOST_TEST(pending(joined));
  all.pass(300 * ms);
  failed(joined, errc::misuse, "the host name 'x' has no address");
}

// MT-10
BOOST_AUTO_TEST_CASE(tells_once_of_a_member_that_is_not_connected_to_and_once_when_that_is_over) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  auto& c = all.start("c", 3, 4003);
  all.join(b, 4001);
  all.problems[4002] = all.problems[4003] = caf::error(caf::sec::request_timeout);
  all.join(c, 4001);
  all.pass(10'000 * ms);
  BOOST_TEST(a.out_of_reach.empty());
  BOOST_TEST_REQUIRE(b.out_of_reach.size() == 1U);
  BOOST_TEST(b.out_of_reach[0].starts_with("c: no answer from 127.0.0.1:4003 within"), b.out_of_reach[0]);
  BOOST_TEST(c.out_of_reach.size() == 1U);
  auto search = all.find(c, "b", 1'000 * ms);
  all.pass(1'000 * ms);
  failed(search, errc::unknown_peer, "this node can't connect to node 'b'");
  all.problems.clear();
  all.pass(longest_pause);
  CHECK_NAMES(all.peers(c), "a", "b");
  BOOST_TEST_REQUIRE(b.out_of_reach.size() == 2U);
  BOOST_TEST(b.out_of_reach[1] == "c: ");
  BOOST_TEST(c.out_of_reach.size() == 2U);
}

// ME-3
BOOST_AUTO_TEST_CASE(is_refused_where_a_caf_program_without_a_face_listens) {
  fake_cluster all;
  auto& b = all.start("b", 2, 4002);
  all.ports[4001] = nullptr;
  failed(all.join(b, 4001), errc::refused, "what listens at 127.0.0.1:4001 is no troupe node");
}

BOOST_AUTO_TEST_CASE(repeats_a_greeting_that_was_lost) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  *a.mute = true;
  auto joined = all.join(b, 4001, 10'000 * ms);
  all.pass(500 * ms);
  *a.mute = false;
  BOOST_TEST(pending(joined));
  all.pass(1000 * ms);
  BOOST_TEST(joined->value.has_value());
  all.pass(10'000 * ms);
  BOOST_TEST(joined->count == 1);
  CHECK_NAMES(a.news, "up b");
  CHECK_NAMES(b.news, "up a");
}

BOOST_AUTO_TEST_CASE(greets_again_when_the_connection_is_lost) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  *a.mute = true;
  auto joined = all.join(b, 4001);
  all.pass(500 * ms);  // less than a greeting waits
  *a.mute = false;
  all.cut(a);
  all.pass(200 * ms);
  BOOST_TEST_REQUIRE(joined->value.has_value());
  CHECK_NAMES(a.news, "up b");
}

// ME-3
BOOST_AUTO_TEST_CASE(succeeds_though_another_member_can_not_be_reached) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  all.ports.erase(4002);
  auto& c = all.start("c", 3, 4003);
  auto joined = all.join(c, 4001, 1000 * ms);
  BOOST_TEST(pending(joined));
  all.pass(500 * ms);
  BOOST_TEST_REQUIRE(joined->value.has_value());
  BOOST_TEST(joined->value->name == "a");
  BOOST_TEST(c.news.front() == "up a");
  CHECK_NAMES(all.peers(a), "b", "c");
}

BOOST_AUTO_TEST_CASE(succeeds_though_another_member_has_gone_here) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  auto& c = all.start("c", 3, 4003);
  all.join(b, 4001);
  all.join(c, 4002);
  all.ask<caf::unit_t>(a.membership, farewell{node_id{3}, "gone for a alone"});
  CHECK_NAMES(all.peers(a), "b");
  caf::anon_send(a.membership, farewell{node_id{2}, "gone for a alone"});
  auto& d = all.start("d", 4, 4004);
  all.join(d, 4002);  // d knows c, which a holds for gone
  const auto dialled = all.dialled;
  auto joined = all.join(a, 4004);
  BOOST_TEST_REQUIRE(joined->value.has_value());
  BOOST_TEST(joined->value->name == "d");
  BOOST_TEST(all.dialled == dialled + 1);  // those that have gone are left alone
}

BOOST_AUTO_TEST_CASE(another_version_of_the_protocol_is_refused_naming_both) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  auto answer =
    all.ask<welcome>(a.membership, hello{"b", node_id{2}, "127.0.0.1", 4002, protocol_version + 7}, all.ports[4002]);
  failed(answer, errc::refused, "speaks version " + std::to_string(protocol_version + 7));
  failed(answer, errc::refused, "node 'a' version " + std::to_string(protocol_version));
  BOOST_TEST(a.news.empty());
  BOOST_TEST(b.news.empty());
}

BOOST_AUTO_TEST_CASE(without_a_face_or_a_proper_name_is_refused) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  failed(all.ask<welcome>(a.membership, hello{"b", node_id{2}, "h", 1, protocol_version}, caf::strong_actor_ptr{}),
         errc::refused, "without a gateway");
  failed(all.ask<welcome>(a.membership, hello{"../b", node_id{2}, "h", 1, protocol_version}, all.ports[4001]), errc::refused,
         "letters, digits");
  failed(all.ask<welcome>(a.membership, hello{"b", node_id{0}, "h", 1, protocol_version}, all.ports[4001]), errc::refused,
         "id 0");
  BOOST_TEST(all.peers(a).empty());
}

BOOST_AUTO_TEST_CASE(tells_both_sides_the_addresses_of_nodes_that_listen_on_all) {
  fake_cluster all;
  all.route = membership::route{"10.0.0.7", "10.0.0.7", "10.0.0.8", false};
  auto& a = all.start("a", 1, 4001, 0, true, "0.0.0.0");
  auto& b = all.start("b", 2, 4002, 0, true, "::");
  auto joined = all.join(b, 4001);
  BOOST_TEST_REQUIRE(joined->value.has_value());
  BOOST_TEST(joined->value->host == "10.0.0.7");
  BOOST_TEST(all.ask<std::vector<member>>(a.membership, support::list_atom::value)->value->at(0).host == "10.0.0.7");
}

BOOST_AUTO_TEST_CASE(another_host_is_refused_to_a_node_on_loopback) {
  fake_cluster all;
  all.route = membership::route{"10.0.0.7", "10.0.0.7", "10.0.0.8", false};
  auto& a = all.start("a", 1, 4001, 0, true, "0.0.0.0");
  auto& b = all.start("b", 2, 4002);
  failed(all.join(b, 4001), errc::refused, "nobody here can reach it at that loopback address");
  CHECK_NAMES(all.peers(a));
  CHECK_NAMES(all.peers(b));
}

BOOST_AUTO_TEST_CASE(another_host_does_not_meet_the_peers_that_are_on_loopback_there) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001, 0, true, "10.0.0.7");
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  all.route = membership::route{"10.0.0.7", "10.0.0.7", "10.0.0.8", false};
  auto& c = all.start("c", 3, 4003, 0, true, "10.0.0.8");
  BOOST_TEST(all.join(c, 4001)->value.has_value());
  CHECK_NAMES(all.peers(c), "a");
  CHECK_NAMES(all.peers(a), "b", "c");
  CHECK_NAMES(all.peers(b), "a");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(names_of_nodes)

// ME-4
BOOST_AUTO_TEST_CASE(of_a_living_node_are_refused_to_others) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  auto& second = all.start("b", 3, 4003);
  auto joined = all.join(second, 4001);
  failed(joined, errc::refused, "the name 'b' is taken by node 'b'");
  failed(joined, errc::refused, "127.0.0.1:4002");
  auto& namesake = all.start("a", 4, 4004);
  failed(all.join(namesake, 4001), errc::refused, "the name 'a' is taken");
  CHECK_NAMES(a.news, "up b");
  BOOST_TEST(second.news.empty());
}

// ME-4
BOOST_AUTO_TEST_CASE(are_refused_by_any_member_of_the_cluster) {
  fake_cluster all;
  all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  auto& other = all.start("b", 3, 4003);
  auto& c = all.start("c", 4, 4004);
  all.join(b, 4001);
  all.join(c, 4001);
  *b.mute = false;
  auto& d = all.start("d", 5, 4005);
  all.join(other, 4005);
  auto joined = all.join(d, 4001);
  BOOST_TEST(pending(joined));  // one of the two may be the successor of the other
  all.pass((membership::member_table::intervals_of_patience + 2) * interval);
  failed(joined, errc::refused, "the name");
  failed(all.join(other, 4004), errc::refused, "the name 'b' is taken");
}

// MT-8: a node may end before those who have heard of it have met it. Its farewell then reaches none of them.
BOOST_AUTO_TEST_CASE(of_a_node_that_ended_before_it_was_met_go_to_its_successor) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  const member ended{"x", node_id{9}, "127.0.0.1", 4999};
  caf::anon_send(caf::actor_cast<caf::actor>(a.membership), gossip{b.who.id, {{ended, 0, member_state::up}}, false});
  all.run();
  auto& next = all.start("x", 3, 4003);
  auto joined = all.join(next, 4001);
  all.pass(8 * interval);
  BOOST_TEST(joined->value.has_value());
  CHECK_NAMES(all.peers(b), "a", "x");
}

// ME-4, ME-1
BOOST_AUTO_TEST_CASE(of_a_node_that_is_unreachable_go_to_its_successor_once_it_is_gone) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  all.freeze(b);
  all.pass(6 * interval);
  auto& next = all.start("b", 3, 4003);
  auto refused = all.join(next, 4001);
  BOOST_TEST(pending(refused));  // the first node may have ended just now
  all.pass(2500 * ms);
  failed(refused, errc::peer_down, "the name 'b' is taken by node 'b'");
  failed(refused, errc::peer_down, "which is unreachable; choose another one, or try again");
  all.pass(forget_after);
  BOOST_TEST_REQUIRE(all.join(next, 4001)->value.has_value());
  BOOST_TEST_REQUIRE(a.news.size() == 4);
  BOOST_TEST(contains(a.news[1], "unreachable b: no sign of life for"), a.news[1]);
  BOOST_TEST(contains(a.news[2], "gone b: unreachable for"), a.news[2]);
  BOOST_TEST(a.news[3] == "up b");
}

// ME-4, ME-1
BOOST_AUTO_TEST_CASE(go_soon_to_a_node_restarted_at_the_same_address) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  all.freeze(b);
  auto& next = all.start("b", 3, 4002);
  auto joined = all.join(next, 4001);
  all.pass(3 * interval);
  BOOST_TEST(joined->value.has_value());
  CHECK_NAMES(a.news, "up b", "unreachable b: did not answer when another node claimed its name",
              "gone b: replaced by a restarted node at the same address", "up b");
}

// ME-4
BOOST_AUTO_TEST_CASE(are_refused_to_a_living_node_that_claims_the_same_address) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  auto& second = all.start("b", 3, 4002);
  failed(all.join(second, 4001), errc::refused, "the name 'b' is taken by node 'b'");
  CHECK_NAMES(a.news, "up b");
}

// ME-4
BOOST_AUTO_TEST_CASE(go_to_one_of_two_successors) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  all.end(b);
  auto& one = all.start("b", 3, 4003);
  auto& two = all.start("b", 4, 4004);
  auto first = all.join(one, 4001);
  auto second = all.join(two, 4001);
  all.pass(5 * interval);
  BOOST_TEST((first->count == 1 && second->count == 1));
  BOOST_TEST(first->value.has_value() != second->value.has_value());
  CHECK_NAMES(all.peers(a), "b");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(heartbeats)

// ME-2
BOOST_AUTO_TEST_CASE(that_are_answered_keep_peers_up) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  all.pass(50 * interval);
  CHECK_NAMES(a.news, "up b");
  CHECK_NAMES(b.news, "up a");
}

// ME-2
BOOST_AUTO_TEST_CASE(of_three_intervals_without_an_answer_make_a_peer_unreachable) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  all.pass(10 * interval);
  *b.mute = true;  // its connection stands, and it goes on sending its own
  all.pass(3 * interval - 10 * ms);
  CHECK_NAMES(a.news, "up b");
  all.pass(interval + 20 * ms);
  BOOST_TEST_REQUIRE(a.news.size() == 2);
  BOOST_TEST(contains(a.news[1], "unreachable b: no sign of life for 4"), a.news[1]);
  BOOST_TEST(all.peers(a).empty());
}

// ME-2: answers may wait behind what comes, but not for ever.
BOOST_AUTO_TEST_CASE(without_an_answer_are_borne_with_for_a_while_if_other_bytes_come) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  all.pass(10 * interval);
  all.bytes_come = true;
  *b.mute = true;
  all.pass((membership::member_table::most_misses - 1) * interval);
  CHECK_NAMES(a.news, "up b");
  all.pass(2 * interval);
  BOOST_TEST_REQUIRE(a.news.size() == 2);
  BOOST_TEST(contains(a.news[1], "unreachable b: no answer to a heartbeat for 24"), a.news[1]);
}

// ME-2: on a slow network every answer may take longer than three intervals.
BOOST_AUTO_TEST_CASE(that_are_answered_late_keep_a_peer_up_if_other_bytes_come) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  std::deque<std::pair<std::int64_t, caf::typed_response_promise<heartbeat_seen>>> waiting;
  const auto gateway = all.system.spawn([&](caf::event_based_actor* self) -> caf::behavior {
    self->set_default_handler(caf::drop);
    return {[&, self](const heartbeat& from) {
              waiting.emplace_back(from.sent_ns, self->make_response_promise<heartbeat_seen>());
              return waiting.back().second;
            },
            [&](support::tick_atom) {
              waiting.front().second.deliver(heartbeat_seen{node_id{2}, waiting.front().first, all.now()});
              waiting.pop_front();
            }};
  });
  all.bytes_come = true;
  all.ask<welcome>(a.membership, hello{"b", node_id{2}, "127.0.0.1", 4002, protocol_version, {}},
                   caf::actor_cast<caf::strong_actor_ptr>(gateway));
  for (int i = 0; i < 2 * membership::member_table::most_misses; ++i) {
    all.pass(interval);
    if (waiting.size() > 5) caf::anon_send(gateway, support::tick_atom::value);
  }
  CHECK_NAMES(a.news, "up b");
  caf::anon_send_exit(gateway, caf::exit_reason::kill);
  all.run();
  waiting.clear();
}

// ME-2
BOOST_AUTO_TEST_CASE(may_be_missed_twice) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  for (int i = 0; i < 5; ++i) {
    *b.mute = true;
    all.pass(2 * interval);
    *b.mute = false;
    all.pass(interval);
  }
  CHECK_NAMES(a.news, "up b");
}

// ME-1
BOOST_AUTO_TEST_CASE(and_all_other_ends_are_one_end) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  *b.mute = true;
  all.pass(5 * interval);
  all.end(b);
  caf::anon_send(a.membership, farewell{node_id{2}, "at last"});
  all.pass(5 * interval);
  BOOST_TEST_REQUIRE(a.news.size() == 3);
  BOOST_TEST(contains(a.news[1], "unreachable b: "), a.news[1]);
  BOOST_TEST(contains(a.news[2], "gone b: its process has ended"), a.news[2]);
}

BOOST_AUTO_TEST_CASE(of_strangers_are_refused) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  failed(all.ask<heartbeat_seen>(a.membership, heartbeat{node_id{7}, 0}), errc::unknown_peer, "not greeted");
  caf::anon_send(a.membership, farewell{node_id{7}, "who?"});
  all.run();
  BOOST_TEST(a.news.empty());
}

BOOST_AUTO_TEST_CASE(that_a_peer_echoes_wrongly_tell_its_clock_all_the_same) {
  using limits = std::numeric_limits<std::int64_t>;
  for (const auto echoed : {limits::min(), std::int64_t{0}, limits::max()}) {
    fake_cluster all;
    auto& a = all.start("a", 1, 4001);
    const auto gateway = all.system.spawn([&all, echoed](caf::event_based_actor* self) -> caf::behavior {
      self->set_default_handler(caf::drop);
      return {[&all, echoed](const heartbeat&) { return heartbeat_seen{node_id{2}, echoed, all.now() + 12'345}; }};
    });
    all.ask<welcome>(a.membership, hello{"b", node_id{2}, "127.0.0.1", 4002, protocol_version, {}},
                     caf::actor_cast<caf::strong_actor_ptr>(gateway));
    all.pass(interval);
    BOOST_TEST(all.ask<std::int64_t>(a.membership, support::clock_atom::value, node_id{2})->value.value() == 12'345);
    caf::anon_send_exit(gateway, caf::exit_reason::kill);
    all.run();
  }
}

BOOST_AUTO_TEST_CASE(tell_how_far_a_clock_is_ahead) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002, 5'000'000'123);
  all.join(b, 4001);
  all.pass(interval);
  BOOST_TEST(all.ask<std::int64_t>(a.membership, support::clock_atom::value, node_id{2})->value.value() == 5'000'000'123);
  BOOST_TEST(all.ask<std::int64_t>(b.membership, support::clock_atom::value, node_id{1})->value.value() == -5'000'000'123);
  BOOST_TEST(all.ask<std::int64_t>(a.membership, support::clock_atom::value, node_id{1})->value.value() == 0);
  failed(all.ask<std::int64_t>(a.membership, support::clock_atom::value, node_id{3}), errc::unknown_peer, "up are: b");
}

BOOST_AUTO_TEST_SUITE_END()

// ME-5, ME-1
BOOST_AUTO_TEST_SUITE(coming_back)

BOOST_AUTO_TEST_CASE(a_peer_that_answers_again_is_up_again_on_both_sides) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  *b.mute = true;  // b can't be reached, but reaches a, and so holds a for up
  all.pass(6 * interval);
  CHECK_NAMES(b.news, "up a", "unreachable a: it held this node for unreachable", "up again a");
  *b.mute = false;
  all.pass(2 * interval);
  BOOST_TEST_REQUIRE(a.news.size() == 3);
  BOOST_TEST(a.news[2] == "up again b");
  all.pass(50 * interval);
  BOOST_TEST(a.news.size() == 3);
  BOOST_TEST(b.news.size() == 3);
}

BOOST_AUTO_TEST_CASE(two_peers_that_were_cut_off_count_one_separation) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  *a.mute = *b.mute = true;
  all.pass(6 * interval);
  *a.mute = *b.mute = false;
  all.pass(10 * interval);
  BOOST_TEST_REQUIRE(a.news.size() == 3);
  BOOST_TEST_REQUIRE(b.news.size() == 3);
  BOOST_TEST(a.news[2] == "up again b");
  BOOST_TEST(b.news[2] == "up again a");
}

BOOST_AUTO_TEST_CASE(a_peer_whose_connection_was_lost_is_dialled_and_up_again) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  all.cut(b);
  all.pass(3 * interval);
  CHECK_NAMES(a.news, "up b", "unreachable b: connection lost", "up again b");
  CHECK_NAMES(b.news, "up a", "unreachable a: it held this node for unreachable", "up again a");
}

BOOST_AUTO_TEST_CASE(a_peer_that_ends_in_the_middle_of_a_greeting_is_gone_soon) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  *b.mute = true;
  all.cut(b);
  CHECK_NAMES(a.news, "up b", "unreachable b: connection lost");
  all.pass(2 * interval);  // the greeting of `a` waits for an answer, over the new connection
  all.end(b);
  all.pass(2 * interval);
  CHECK_NAMES(a.news, "up b", "unreachable b: connection lost",
              "gone b: its process has ended: no program listens at its address");
}

BOOST_AUTO_TEST_CASE(a_peer_that_ends_after_its_greeting_is_gone_soon) {
  fake_cluster all;
  auto& a = all.start("a", 2, 4001);
  auto& b = all.start("b", 1, 4002);  // the lower id: `b` dials at once
  all.join(b, 4001);
  *b.mute = true;
  all.cut(b);
  all.cut(a);
  CHECK_NAMES(a.news, "up b", "unreachable b: connection lost");  // `b` has greeted, and does not answer
  all.end(b);
  all.pass(3 * interval);
  CHECK_NAMES(a.news, "up b", "unreachable b: connection lost",
              "gone b: its process has ended: no program listens at its address");
}

BOOST_AUTO_TEST_CASE(a_node_is_not_greeted_while_its_predecessor_is_unreachable_here) {  // MT-9
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  auto& c = all.start("c", 3, 4003);
  all.join(b, 4001);
  all.join(c, 4001);
  all.freeze(c);
  all.pass(6 * interval);
  auto& next = all.start("c", 4, 4004);
  const std::vector<member_news> heard{{c.who, 0, member_state::gone}, {next.who, 0, member_state::up}};
  caf::anon_send(caf::actor_cast<caf::actor>(b.membership), gossip{a.who.id, heard, false});
  all.pass(10 * interval);
  CHECK_NAMES(next.news);  // `b` would not hold it for up, and so would not answer its heartbeats
  all.end(c);
  all.pass(5 * interval);
  std::sort(next.news.begin(), next.news.end());
  CHECK_NAMES(next.news, "up a", "up b");
  BOOST_TEST(b.news.back() == "up c");
}

BOOST_AUTO_TEST_CASE(a_peer_that_was_gone_and_lives_starts_over_on_both_sides) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  *a.mute = *b.mute = true;
  all.pass(forget_after + 10 * interval);
  BOOST_TEST_REQUIRE(a.news.size() == 3);
  BOOST_TEST_REQUIRE(b.news.size() == 3);
  BOOST_TEST(contains(a.news[2], "gone b: unreachable for"), a.news[2]);
  *a.mute = *b.mute = false;
  all.pass(longest_pause);
  CHECK_NAMES(all.peers(a), "b");
  CHECK_NAMES(all.peers(b), "a");
  BOOST_TEST(a.news.back() == "up b");
  BOOST_TEST(b.news.back() == "up a");
  all.pass(10 * interval);
  BOOST_TEST(a.news.size() == 4);
  BOOST_TEST(b.news.size() == 4);
}

// ME-5: b reaches a, but a does not reach b.
BOOST_AUTO_TEST_CASE(a_peer_that_hears_that_it_was_gone_drops_the_other_too) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  *b.mute = true;
  all.pass(forget_after + 10 * interval);
  *b.mute = false;
  all.pass(10 * interval);
  BOOST_TEST((std::find(b.news.begin(), b.news.end(), "gone a: it held this node for gone") != b.news.end()),
             boost::algorithm::join(b.news, "; "));
  CHECK_NAMES(all.peers(a), "b");
  CHECK_NAMES(all.peers(b), "a");
}

BOOST_AUTO_TEST_CASE(a_peer_that_ended_and_was_started_again_is_met_without_being_asked) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  all.end(b);
  CHECK_NAMES(a.news, "up b", "unreachable b: connection lost",
              "gone b: its process has ended: no program listens at its address");
  auto& next = all.start("b", 3, 4002);
  all.pass(longest_pause);
  BOOST_TEST(a.news.back() == "up b");
  CHECK_NAMES(next.news, "up a");
}

BOOST_AUTO_TEST_CASE(a_node_of_another_name_at_the_address_is_not_met) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  all.end(b);
  auto& stranger = all.start("of_another_cluster", 3, 4002);
  all.pass(2 * longest_pause);
  BOOST_TEST(stranger.news.empty());
  BOOST_TEST(all.peers(a).empty());
}

// The address that other nodes tell of a member may be that of another node meanwhile.
BOOST_AUTO_TEST_CASE(a_node_of_another_name_at_the_address_of_a_stranger_is_not_met) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  all.freeze(b);  // the others do not know yet
  auto& stranger = all.start("of_another_cluster", 3, 4002);
  auto& c = all.start("c", 4, 4003);
  auto joined = all.join(c, 4001);
  all.pass(longest_pause);
  BOOST_TEST(joined->value.has_value());
  BOOST_TEST(stranger.news.empty());
  CHECK_NAMES(all.peers(c), "a");
  CHECK_NAMES(all.peers(a), "c");
}

BOOST_AUTO_TEST_CASE(a_peer_that_left_is_not_dialled) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  all.ask<caf::unit_t>(b.membership, support::leave_atom::value, std::string("done"));
  const auto dialled = all.dialled;
  all.pass(forget_after);
  BOOST_TEST(all.dialled == dialled);
  CHECK_NAMES(a.news, "up b", "gone b: left: done");
}

BOOST_AUTO_TEST_CASE(nodes_that_could_not_meet_meet_later) {
  fake_cluster all;
  all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  const auto port_of_b = all.ports.extract(4002);
  auto& c = all.start("c", 3, 4003);
  const auto port_of_c = all.ports.extract(4003);
  all.join(c, 4001, 1000 * ms);
  all.pass(1000 * ms);
  CHECK_NAMES(c.news, "up a");
  all.ports[4002] = port_of_b.mapped();
  all.ports[4003] = port_of_c.mapped();
  all.pass(3 * membership::member_table::intervals_to_greet * interval);
  CHECK_NAMES(c.news, "up a", "up b");
  CHECK_NAMES(b.news, "up a", "up c");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(leaving)

BOOST_AUTO_TEST_CASE(a_lost_connection_is_news_at_once) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  auto& c = all.start("c", 3, 4003);
  all.join(b, 4001);
  all.join(c, 4001);
  caf::anon_send_exit(b.gateway, caf::exit_reason::remote_link_unreachable);
  caf::anon_send_exit(c.gateway, caf::exit_reason::user_shutdown);
  all.run();
  CHECK_NAMES(a.news, "up b", "up c", "unreachable b: connection lost", "gone c: its node stopped");
}

BOOST_AUTO_TEST_CASE(a_farewell_is_news_at_once_and_frees_the_name) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  BOOST_TEST(all.ask<caf::unit_t>(b.membership, support::leave_atom::value, std::string("done"))->value.has_value());
  CHECK_NAMES(a.news, "up b", "gone b: left: done");
  auto& next = all.start("b", 3, 4003);
  BOOST_TEST(all.join(next, 4001)->value.has_value());
  BOOST_TEST(a.news.back() == "up b");
}

BOOST_AUTO_TEST_CASE(does_not_wait_for_the_mute) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  caf::anon_send_exit(a.gateway, caf::exit_reason::kill);
  auto left = all.ask<caf::unit_t>(b.membership, support::leave_atom::value, std::string("done"));
  all.pass(interval);
  BOOST_TEST(left->value.has_value());
  BOOST_TEST(all.ask<caf::unit_t>(b.membership, support::leave_atom::value, std::string("again"))->value.has_value());
}

BOOST_AUTO_TEST_CASE(ends_what_waits_and_refuses_what_comes) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  auto finding = all.find(a, "nobody", 60'000 * ms);
  auto joining = all.join(a, all.mute_port, 60'000 * ms);
  all.ask<caf::unit_t>(a.membership, support::leave_atom::value, std::string("done"));
  failed(finding, errc::stopping, "node 'a' is stopping");
  failed(joining, errc::stopping, "node 'a' is stopping");
  failed(all.find(a, "nobody", 60'000 * ms), errc::stopping, "node 'a' is stopping");
  failed(all.join(a, 4002), errc::stopping, "node 'a' is stopping");
  failed(all.join(b, 4001), errc::stopping, "node 'a' is stopping");
  all.pass(61'000 * ms);
  BOOST_TEST(finding->count == 1);
  BOOST_TEST(joining->count == 1);
  BOOST_TEST(a.news.empty());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(finding)

BOOST_AUTO_TEST_CASE(a_known_peer_or_oneself_is_answered_at_once) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  auto found = all.find(a, "b", ms);
  BOOST_TEST_REQUIRE(found->value.has_value());
  BOOST_TEST((found->value->who.id == node_id{2}));
  BOOST_TEST((found->value->gateway == all.ports[4002]));
  BOOST_TEST((all.find(a, "a", ms)->value.value().gateway == all.ports[4001]));
}

// ME-3
BOOST_AUTO_TEST_CASE(waits_until_the_peer_is_up) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto early = all.find(a, "b", 1000 * ms);
  auto also = all.find(a, "b", 300 * ms);
  all.pass(200 * ms);
  BOOST_TEST((pending(early) && pending(also)));
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  BOOST_TEST((early->value && also->value));
  all.pass(2000 * ms);
  BOOST_TEST((early->count == 1 && also->count == 1));
}

// ME-3
BOOST_AUTO_TEST_CASE(gives_up_at_its_deadline_naming_who_is_up) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto hasty = all.find(a, "x", 0);
  all.pass(ms);
  failed(hasty, errc::unknown_peer, "no peer 'x' became known within 0 ms; up are: none");
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  auto found = all.find(a, "x", 500 * ms);
  all.pass(495 * ms);
  BOOST_TEST(pending(found));
  all.pass(5 * ms);
  failed(found, errc::unknown_peer, "no peer 'x' became known within 500 ms; up are: b");
}

BOOST_AUTO_TEST_CASE(does_not_answer_with_a_peer_that_is_down) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  caf::anon_send_exit(b.gateway, caf::exit_reason::kill);
  all.run();
  auto found = all.find(a, "b", 100 * ms);
  all.pass(100 * ms);
  failed(found, errc::unknown_peer, "up are: none");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(subscribers)

BOOST_AUTO_TEST_CASE(that_come_late_hear_who_is_up_and_those_that_end_are_forgotten) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.join(b, 4001);
  names news;
  auto late = all.system.spawn([&](caf::event_based_actor*) -> caf::behavior {
    return {[&](const contracts::peer_up& x) { news.push_back("up " + x.who.name); },
            [&](const contracts::peer_down&) { news.push_back("down"); }};
  });
  caf::anon_send(a.membership, support::subscribe_atom::value, late);
  all.run();
  CHECK_NAMES(news, "up b");
  caf::anon_send_exit(late, caf::exit_reason::kill);
  all.run();
  caf::anon_send_exit(b.gateway, caf::exit_reason::kill);
  all.run();
  BOOST_TEST(news.size() == 1);
  BOOST_TEST(a.news.size() == 2);
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

/// More nodes than one mesh takes: a0 to a29 have joined by each other.
struct large_cluster {
  large_cluster() {
    for (int i = 0; i < 30; ++i) {
      nodes.push_back(&all.start("a" + std::to_string(i), 100 + 37 * i % 30, static_cast<std::uint16_t>(5000 + i)));
      if (i == 0) continue;
      BOOST_TEST(all.join(*nodes.back(), static_cast<std::uint16_t>(5000 + i / 2))->value.has_value());
      all.pass(interval);
    }
    all.pass(4 * interval);
  }

  /// A node that `from` is not connected to.
  test::fake_node& stranger_of(const test::fake_node& from) {
    for (auto* each : nodes)
      if (each != &from && std::find(from.news.begin(), from.news.end(), "up " + each->who.name) == from.news.end())
        return *each;
    throw std::logic_error("the node is connected to all others");
  }

  fake_cluster all;
  std::vector<test::fake_node*> nodes;
};

/// The node that joined last, and a node that it is not connected to.
struct two_strangers : large_cluster {
  test::fake_node& last = *nodes.back();
  test::fake_node& other = stranger_of(last);
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(large_clusters, two_strangers)

BOOST_AUTO_TEST_CASE(know_all_members_and_connect_to_few) {
  for (const auto* each : nodes) {
    BOOST_TEST(all.peers(*each).size() == 29u, each->who.name);
    BOOST_TEST(each->news.size() < 25u, each->who.name << " has " << each->news.size() << " peers");
  }
}

// ME-3, MT-6
BOOST_AUTO_TEST_CASE(connect_two_nodes_when_one_looks_for_the_other) {
  const auto dialled = all.dialled;
  const auto found = all.find(last, other.who.name, 1000 * ms);
  BOOST_TEST_REQUIRE(found->value.has_value());
  BOOST_TEST((found->value->who.id == other.who.id));
  BOOST_TEST(all.dialled == dialled + 1);
  BOOST_TEST(last.news.back() == "up " + other.who.name);
  BOOST_TEST(other.news.back() == "up " + last.who.name);
}

BOOST_AUTO_TEST_CASE(say_that_a_node_that_ended_is_not_up) {
  all.end(other);
  all.pass(15 * interval);
  BOOST_TEST(last.heard.back() == "lost " + other.who.name);
  BOOST_TEST(all.peers(last).size() == 28u);
  const auto found = all.find(last, other.who.name, 0);
  all.pass(5 * ms);
  failed(found, errc::unknown_peer, "no peer '" + other.who.name + "'");
}

// A search by id, which a call makes, ends with its node.
BOOST_AUTO_TEST_CASE(end_a_search_for_a_node_that_is_gone) {
  all.end(other);
  const auto found =
    all.ask<contracts::peer_up>(last.membership, support::find_atom::value, other.who.id, std::int64_t{60'000 * ms});
  BOOST_TEST(pending(found));
  all.pass(forget_after);
  failed(found, errc::peer_down, "node '" + other.who.name + "' went down: ");
}

BOOST_AUTO_TEST_CASE(name_ten_members_at_most_in_an_error) {
  const auto found = all.find(last, "nobody", 0);
  all.pass(5 * ms);
  failed(found, errc::unknown_peer, "and 19 more");
}

BOOST_AUTO_TEST_CASE(give_the_name_of_a_member_to_nobody_else) {  // ME-4
  auto& second = all.start(other.who.name, 999, 6000);
  auto joined = all.join(second, last.who.port);
  all.pass(20 * interval);
  failed(joined, errc::refused, "the name '" + other.who.name + "' is taken");
}

BOOST_AUTO_TEST_CASE(give_the_name_of_a_node_that_ended_to_its_successor) {
  all.end(other);
  auto& second = all.start(other.who.name, 999, 6000);
  auto joined = all.join(second, last.who.port);
  all.pass(20 * interval);
  BOOST_TEST(joined->value.has_value());
  all.pass(20 * interval);
  for (const auto* each : nodes) {
    if (each == &other) continue;
    const auto found = all.find(*each, other.who.name, 1000 * ms);
    BOOST_TEST_REQUIRE(found->value.has_value(), each->who.name);
    BOOST_TEST((found->value->who.id == second.who.id));
  }
}

BOOST_AUTO_TEST_SUITE_END()
