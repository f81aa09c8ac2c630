// SPDX-License-Identifier: BSD-3-Clause
// Joins of nodes, and the names that nodes have in a cluster.
#include <troupe/actors/membership/membership.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "actors/membership_fixture.hpp"
#include "support/contains.hpp"

namespace {

using namespace troupe;
using test::contains;
using test::fake_cluster;
using test::joined_nodes;
using test::two_nodes;

}  // namespace

BOOST_AUTO_TEST_SUITE(joining)

namespace {

constexpr auto ms = fake_cluster::ms;
constexpr auto longest_pause = fake_cluster::longest_pause;

}  // namespace

BOOST_FIXTURE_TEST_CASE(makes_both_sides_know_each_other, two_nodes) {
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

BOOST_FIXTURE_TEST_CASE(one_node_of_a_cluster_joins_them_all, two_nodes) {
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

BOOST_FIXTURE_TEST_CASE(two_nodes_makes_them_know_each_other, two_nodes) {
  auto& c = all.start("c", 3, 4003);
  all.join(a, 4002);
  all.join(a, 4003);
  CHECK_NAMES(all.peers(b), "a", "c");
  CHECK_NAMES(all.peers(c), "a", "b");
}

BOOST_FIXTURE_TEST_CASE(two_nodes_of_which_one_has_left_looks_for_the_other_alone, two_nodes) {
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

BOOST_FIXTURE_TEST_CASE(a_node_twice_or_from_both_sides_is_one_peer, two_nodes) {
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
BOOST_FIXTURE_TEST_CASE(is_answered_by_its_deadline_whoever_stays_mute, two_nodes) {
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
BOOST_FIXTURE_TEST_CASE(tries_again_until_the_deadline_whatever_cut_the_handshake, two_nodes) {
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
BOOST_FIXTURE_TEST_CASE(tells_once_of_a_member_that_is_not_connected_to_and_once_when_that_is_over, two_nodes) {
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

BOOST_FIXTURE_TEST_CASE(repeats_a_greeting_that_was_lost, two_nodes) {
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

BOOST_FIXTURE_TEST_CASE(greets_again_when_the_connection_is_lost, two_nodes) {
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
BOOST_FIXTURE_TEST_CASE(succeeds_though_another_member_can_not_be_reached, joined_nodes) {
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

BOOST_FIXTURE_TEST_CASE(succeeds_though_another_member_has_gone_here, two_nodes) {
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

BOOST_FIXTURE_TEST_CASE(another_version_of_the_protocol_is_refused_naming_both, two_nodes) {
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

namespace {

constexpr auto ms = fake_cluster::ms;
constexpr auto interval = fake_cluster::interval;
constexpr auto forget_after = fake_cluster::forget_after;

}  // namespace

// ME-4
BOOST_FIXTURE_TEST_CASE(of_a_living_node_are_refused_to_others, joined_nodes) {
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
BOOST_FIXTURE_TEST_CASE(are_refused_by_any_member_of_the_cluster, two_nodes) {
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
BOOST_FIXTURE_TEST_CASE(of_a_node_that_ended_before_it_was_met_go_to_its_successor, joined_nodes) {
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
BOOST_FIXTURE_TEST_CASE(of_a_node_that_is_unreachable_go_to_its_successor_once_it_is_gone, joined_nodes) {
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
BOOST_FIXTURE_TEST_CASE(go_soon_to_a_node_restarted_at_the_same_address, joined_nodes) {
  all.freeze(b);
  auto& next = all.start("b", 3, 4002);
  auto joined = all.join(next, 4001);
  all.pass(3 * interval);
  BOOST_TEST(joined->value.has_value());
  CHECK_NAMES(a.news, "up b", "unreachable b: did not answer when another node claimed its name",
              "gone b: replaced by a restarted node at the same address", "up b");
}

// ME-4
BOOST_FIXTURE_TEST_CASE(are_refused_to_a_living_node_that_claims_the_same_address, joined_nodes) {
  auto& second = all.start("b", 3, 4002);
  failed(all.join(second, 4001), errc::refused, "the name 'b' is taken by node 'b'");
  CHECK_NAMES(a.news, "up b");
}

// ME-4
BOOST_FIXTURE_TEST_CASE(go_to_one_of_two_successors, joined_nodes) {
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
