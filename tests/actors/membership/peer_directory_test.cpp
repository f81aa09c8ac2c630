// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <cstdint>

#include <ATen/ATen.h>

#include <troupe/actors/membership/peer_directory.hpp>

namespace {

using troupe::member;
using troupe::node_id;
using troupe::membership::peer_directory;
using troupe::membership::peer_traffic;

troupe::member numbered(std::uint64_t id, const std::string& name) { return {name, {id}, "127.0.0.1", 4000}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(directory_of_peers)

BOOST_AUTO_TEST_CASE(a_node_that_went_down_does_not_come_back_by_old_news) {  // PD-1
  peer_directory known;
  known.add(numbered(1, "a"), nullptr);
  known.remove({1});
  known.add(numbered(1, "a"), nullptr);
  BOOST_TEST(known.members().empty());
  known.add(numbered(2, "a"), nullptr);  // its successor
  BOOST_TEST(known.members().size() == 1u);
  BOOST_TEST(known.name({1}) == "a");
}

BOOST_AUTO_TEST_CASE(a_node_that_is_up_again_comes_back_by_newer_news_alone) {  // PD-1, PD-2
  peer_directory known;
  known.add(numbered(1, "a"), nullptr, 1);
  known.traffic.received(troupe::node_id{1}, {at::ones({2})});
  known.remove({1}, 1);
  BOOST_TEST(known.is_down({1}));
  known.add(numbered(1, "a"), nullptr, 1);
  BOOST_TEST(known.members().empty());
  known.add(numbered(1, "a"), nullptr, 2);
  BOOST_TEST(known.members().size() == 1u);
  BOOST_TEST(!known.is_down({1}));
  for (std::uint64_t id = 2; id <= 100; ++id) {
    known.add(numbered(id, "n" + std::to_string(id)), nullptr, id + 1);
    known.remove({id}, id + 1);
  }
  BOOST_TEST(known.traffic.report({0}).front().bytes_received ==
             8u);  // was not taken for one of the nodes that went down first
}

BOOST_AUTO_TEST_CASE(a_peer_that_is_not_up_says_why_and_since_when) {
  peer_directory known;
  known.add(numbered(1, "a"), nullptr, 1);
  auto peer = known.traffic.report({0}).front();
  BOOST_TEST(peer.up);
  BOOST_TEST((peer.since_ns >= 0 && peer.since_ns < 60'000'000'000));
  known.remove({1}, 1, "connection lost", false);
  peer = known.traffic.report({0}).front();
  BOOST_TEST((!peer.up && !peer.gone && peer.reason == "connection lost"));
  known.remove({1}, 1, "its process has ended");  // after it was unreachable
  const auto later = known.traffic.report({0}).front();
  BOOST_TEST((later.gone && later.reason == "its process has ended"));
  BOOST_TEST(later.since_ns >= peer.since_ns);
  known.add(numbered(1, "a"), nullptr, 2);
  peer = known.traffic.report({0}).front();
  BOOST_TEST((peer.up && !peer.gone && peer.reason.empty()));
}

BOOST_AUTO_TEST_CASE(messages_are_counted_by_node_and_by_name) {
  peer_directory known;
  known.add(numbered(1, "self"), nullptr);
  known.add(numbered(2, "b"), nullptr);
  known.traffic.sent({2}, {at::ones({4}), at::Tensor{}});
  known.traffic.sent({3}, {at::ones({4})});  // nobody
  known.traffic.received(known.find("b").value(), {at::ones({2}, at::kDouble)});
  known.traffic.received({2});
  const auto traffic = known.traffic.report({1});
  BOOST_TEST_REQUIRE(traffic.size() == 1u);
  BOOST_TEST(traffic[0].who.name == "b");
  BOOST_TEST(traffic[0].messages_sent == 1u);
  BOOST_TEST(traffic[0].bytes_sent == 16u);
  BOOST_TEST(traffic[0].messages_received == 2u);
  BOOST_TEST(traffic[0].bytes_received == 16u);
}

BOOST_AUTO_TEST_CASE(those_that_are_up_come_first_and_the_last_64_that_went_down_are_remembered) {  // PD-2
  peer_directory known;
  for (std::uint64_t id = 1; id <= 100; ++id) known.add(numbered(id, "n" + std::to_string(id)), nullptr);
  for (std::uint64_t id = 1; id <= 99; ++id) known.remove({id});
  const auto traffic = known.traffic.report({0});
  BOOST_TEST(traffic.size() == 65u);
  BOOST_TEST(traffic.front().who.name == "n100");
  BOOST_TEST(traffic.front().up);
  for (std::size_t i = 1; i < traffic.size(); ++i) BOOST_TEST((!traffic[i].up && traffic[i].who.id.value > 35));
}

BOOST_AUTO_TEST_CASE(members_that_are_not_connected_are_listed_until_others_say_that_they_are_gone) {  // PD-3
  peer_directory known;
  const member stage{"stage", node_id{7}, "10.0.0.7", 4000};
  BOOST_TEST(known.know(stage));
  BOOST_TEST(!known.know(stage));
  BOOST_TEST(known.is_member(node_id{7}));
  BOOST_TEST_REQUIRE(known.members().size() == 1u);
  BOOST_TEST(known.traffic.report({}).at(0).transport == "not connected");
  BOOST_TEST((known.gateway(node_id{7}) == nullptr));
  known.add(stage, nullptr, 1);
  BOOST_TEST(!known.know(stage));  // a peer
  BOOST_TEST(!known.forget(node_id{7}, "left", true));
  BOOST_TEST(known.members().size() == 1u);
  known.remove(node_id{7}, 1);
  BOOST_TEST(!known.is_member(node_id{7}));
  known.know(stage);
  BOOST_TEST(known.forget(node_id{7}, "left", true));
  BOOST_TEST(known.members().empty());
}

BOOST_AUTO_TEST_CASE(a_member_that_is_not_connected_says_since_when_it_is_up_or_not_and_why) {  // PD-2, PD-3
  std::int64_t now_ns = 100;
  peer_directory known([&] { return now_ns; });
  const auto stage = numbered(7, "stage");
  known.know(stage);
  now_ns += 5;
  known.know(stage);  // told once more
  now_ns += 5;
  auto seen = known.traffic.report({}).at(0);
  BOOST_TEST((seen.up && seen.since_ns == 10 && seen.transport == "not connected"));
  known.add(stage, nullptr, 1);  // the nodes connect: the member has been up all the time
  now_ns += 10;
  seen = known.traffic.report({}).at(0);
  BOOST_TEST((seen.up && seen.since_ns == 20 && seen.transport.empty()));
  BOOST_TEST(!known.forget({7}, "others lost it", true));  // this node sees for itself
  BOOST_TEST((known.traffic.report({}).at(0).up && known.traffic.report({}).at(0).reason.empty()));

  known.know(numbered(8, "other"));
  now_ns += 10;
  BOOST_TEST(known.forget({8}, "did not answer", false));
  now_ns += 30;
  seen = known.traffic.report({}).at(1);
  BOOST_TEST((!seen.up && !seen.gone && seen.since_ns == 30 && seen.reason == "did not answer" && seen.transport.empty()));
  BOOST_TEST(!known.is_member({8}));
  BOOST_TEST(!known.forget({8}, "its host is lost", true));  // after it was unreachable
  seen = known.traffic.report({}).at(1);
  BOOST_TEST((seen.gone && seen.since_ns == 30 && seen.reason == "its host is lost"));
  known.know(numbered(8, "other"));
  seen = known.traffic.report({}).at(0);
  BOOST_TEST((seen.who.name == "other" && seen.up && !seen.gone && seen.since_ns == 0 && seen.reason.empty()));
}

BOOST_AUTO_TEST_CASE(a_peer_that_is_known_again_after_it_went_down_keeps_its_traffic) {  // PD-2, PD-3
  peer_directory known;
  known.add(numbered(1, "a"), nullptr, 1);
  known.traffic.received(node_id{1}, {at::ones({2})});
  known.remove({1}, 1, "connection lost");
  known.know(numbered(1, "a"));
  const auto traffic = known.traffic.report({});
  BOOST_TEST_REQUIRE(traffic.size() == 1u);
  BOOST_TEST((traffic[0].up && traffic[0].bytes_received == 8u && traffic[0].reason.empty()));
  known.remove({1}, 1, "its process has ended");
  BOOST_TEST((!known.traffic.report({})[0].up && known.members().empty()));
}

BOOST_AUTO_TEST_CASE(the_last_64_members_that_went_away_are_remembered_whether_they_were_peers_or_not) {  // PD-2
  peer_directory known;
  for (std::uint64_t id = 1; id <= 100; ++id) {
    const auto who = numbered(id, "n" + std::to_string(id));
    if (id % 2 == 0) {
      known.add(who, nullptr, id);
      known.remove({id}, id, "left");
    } else {
      known.know(who);
      known.forget({id}, "left", true);
    }
  }
  const auto traffic = known.traffic.report({});
  BOOST_TEST(traffic.size() == 64u);
  for (const auto& each : traffic) BOOST_TEST((!each.up && each.gone && each.reason == "left" && each.who.id.value > 36));
}

BOOST_AUTO_TEST_CASE(nodes_that_were_never_connected_can_be_left_out_and_are_counted) {
  using which = peer_traffic::which;
  peer_directory known;
  BOOST_TEST(known.others_listed() == 0u);
  known.add(numbered(1, "self"), nullptr);
  known.add(numbered(2, "peer"), nullptr, 1);
  known.add(numbered(3, "was peer"), nullptr, 2);
  known.remove({3}, 2, "left");
  for (std::uint64_t id = 10; id < 20; ++id) known.know(numbered(id, "known"));
  known.forget({10}, "left", true);
  BOOST_TEST(known.others_listed() == 10u);
  BOOST_TEST(known.traffic.report({1}).size() == 12u);
  const auto connected = known.traffic.report({1}, which::connected);
  BOOST_TEST_REQUIRE(connected.size() == 2u);
  BOOST_TEST(connected[0].who.name == "peer");
  BOOST_TEST(connected[1].who.name == "was peer");
  known.know(numbered(3, "was peer"));
  BOOST_TEST(known.traffic.report({1}, which::connected).at(1).transport == "not connected");
}

BOOST_AUTO_TEST_CASE(a_member_that_is_not_reached_has_an_entry_until_it_is_reached_or_gone) {  // PD-6
  std::int64_t now = 5;
  peer_directory known([&] { return now; });
  known.add(numbered(1, "self"), nullptr);
  const auto b = numbered(2, "b");
  known.know(b);
  known.traffic.note_obstacle(b, "no answer");
  known.traffic.note_obstacle(numbered(3, "c"), "no answer");
  now = 12;
  for (const auto which : {peer_traffic::which::all, peer_traffic::which::connected}) {
    const auto traffic = known.traffic.report({1}, which);
    BOOST_TEST_REQUIRE(traffic.size() == 2U);
    BOOST_TEST((traffic[0].who.name == "b" && !traffic[0].up && !traffic[0].gone && traffic[0].since_ns == 7));
    BOOST_TEST((traffic[0].transport == troupe::not_reached && traffic[0].reason == "no answer"));
  }
  known.traffic.note_obstacle(numbered(3, "c"), "");
  known.add(b, nullptr, 1);
  BOOST_TEST_REQUIRE(known.traffic.report({1}).size() == 1U);
  BOOST_TEST(known.traffic.report({1})[0].up);
  for (std::uint64_t id = 10; id < 200; ++id) known.traffic.note_obstacle(numbered(id, "n"), "no answer");
  BOOST_TEST(known.traffic.report({1}).size() == 1U + 64U);
}

BOOST_AUTO_TEST_CASE(members_that_come_and_go_leave_a_bounded_trace) {  // PD-5
  peer_directory known;
  known.add(numbered(1, "self"), nullptr);
  const auto come_and_go = [&](std::uint64_t from, std::uint64_t to) {
    for (auto id = from; id < to; ++id) {
      const auto who = numbered(id, "n" + std::to_string(id));
      known.know(who);
      known.traffic.sent(who.id);
      known.forget(who.id, "left", true);
    }
  };
  come_and_go(2, 200);
  const auto before = known.entries();
  come_and_go(200, 2000);
  BOOST_TEST(known.entries() == before);
  BOOST_TEST(known.name({1999}) == "n1999");
  BOOST_TEST(known.name({2}) == to_string(node_id{2}));
  BOOST_TEST(known.name({1}) == "self");
}

BOOST_AUTO_TEST_CASE(peers_that_come_and_go_leave_a_bounded_trace_and_old_news_still_change_nothing) {  // PD-1, PD-5
  constexpr std::uint64_t most_down = 4096;
  peer_directory known;
  known.add(numbered(1, "self"), nullptr);
  known.add(numbered(2, "stays"), nullptr, 1);
  const auto come_and_go = [&](std::uint64_t from, std::uint64_t to) {
    for (auto id = from; id < to; ++id) {
      known.add(numbered(id, "n"), nullptr, id);
      known.remove({id}, id, "left");
    }
  };
  come_and_go(10, 20 + most_down);
  const auto before = known.entries();
  come_and_go(20 + most_down, 2000 + most_down);
  BOOST_TEST(known.entries() == before);
  BOOST_TEST(!known.is_down({10}));
  known.add(numbered(10, "n"), nullptr, 10);  // news from before it went down
  BOOST_TEST((known.is_member({2}) && !known.is_member({10})));
  known.add(numbered(10, "n"), nullptr, 2000 + most_down);
  BOOST_TEST(known.is_member({10}));
}

BOOST_AUTO_TEST_CASE(ids_that_only_messages_name_leave_nothing_behind) {  // PD-5
  peer_directory known;
  known.add(numbered(1, "a"), nullptr, 1);
  const auto before = known.entries();
  auto call = known.traffic.hold({1});
  for (std::uint64_t id = 10; id < 100; ++id) {
    const auto stranger = known.traffic.hold({id});
    BOOST_TEST(known.traffic.is_used({id}, [] { return false; }));
    known.traffic.sent({id});
    known.traffic.received(node_id{id});
  }
  BOOST_TEST(known.traffic.is_used({200}, [] { return true; }));
  BOOST_TEST(!known.traffic.is_used({200}, [] { return false; }));
  BOOST_TEST(known.entries() == before);
  known.remove({1}, 1, "left");
  BOOST_TEST(known.traffic.is_used({1}, [] { return false; }));  // until the call ends
  const auto during = known.entries();
  call.reset();
  BOOST_TEST(known.entries() == during - 1);
  BOOST_TEST(!known.traffic.is_used({1}, [] { return false; }));
}

// MT-4 of member_table
BOOST_AUTO_TEST_CASE(a_peer_is_used_while_a_call_is_under_way_and_for_a_while_after_a_message) {
  std::int64_t now_ns = 0;
  peer_directory known([&] { return now_ns; });
  const auto nothing = [] { return false; };
  for (const std::uint64_t id : {7, 9}) known.add(numbered(id, "n" + std::to_string(id)), nullptr);
  const node_id who{7};
  BOOST_TEST(!known.traffic.is_used(who, nothing));
  auto call = known.traffic.hold(who);
  auto second = known.traffic.hold(who);
  now_ns += 2 * peer_traffic::rest_after_ns;
  BOOST_TEST(known.traffic.is_used(who, nothing));
  call.reset();
  now_ns += 2 * peer_traffic::rest_after_ns;
  BOOST_TEST(known.traffic.is_used(who, nothing));
  second.reset();
  now_ns += peer_traffic::rest_after_ns - 1;
  BOOST_TEST(known.traffic.is_used(who, nothing));
  ++now_ns;
  BOOST_TEST(!known.traffic.is_used(who, nothing));
  BOOST_TEST(!known.traffic.is_used({9}, nothing));
  known.traffic.sent({9});
  BOOST_TEST(known.traffic.is_used({9}, nothing));  // the message ends the rest at once
  known.traffic.received(who);
  BOOST_TEST(known.traffic.is_used(who, nothing));
}

BOOST_AUTO_TEST_CASE(a_peer_that_rests_is_watched_again_once_something_ties_the_nodes_together) {  // PD-4
  std::int64_t now_ns = 0;
  peer_directory known([&] { return now_ns; });
  const node_id who{7};
  known.add(numbered(7, "peer"), nullptr);
  int asked = 0;
  bool is_tied = false;
  const auto keeps = [&] { return ++asked, is_tied; };
  BOOST_TEST(!known.traffic.is_used(who, keeps));
  is_tied = true;  // by a third node: no message goes between the two
  now_ns += peer_traffic::rest_after_ns - 1;
  BOOST_TEST(!known.traffic.is_used(who, keeps));
  BOOST_TEST(asked == 1);  // once in this time
  ++now_ns;
  BOOST_TEST(known.traffic.is_used(who, keeps));
  now_ns += peer_traffic::rest_after_ns - 1;
  BOOST_TEST(known.traffic.is_used(who, keeps));
  BOOST_TEST(asked == 2);
  is_tied = false;
  ++now_ns;
  BOOST_TEST(!known.traffic.is_used(who, keeps));
  BOOST_TEST(asked == 3);
}

BOOST_AUTO_TEST_SUITE_END()
