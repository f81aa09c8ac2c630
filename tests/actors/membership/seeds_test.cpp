// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/seeds.hpp>

#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/sec.hpp>

#include "actors/membership_fixture.hpp"
#include "support/contains.hpp"

// ME-6
BOOST_AUTO_TEST_SUITE(seeds)

namespace {

using namespace troupe;
using test::contains;
using test::fake_cluster;

constexpr auto ms = fake_cluster::ms;
constexpr auto longest_pause = fake_cluster::longest_pause;
constexpr std::int64_t for_ever = 0;

using names = std::vector<std::string>;

std::string on_port(int port) { return "127.0.0.1:" + std::to_string(port); }

}  // namespace

BOOST_AUTO_TEST_CASE(any_one_that_is_there_is_enough_and_the_others_are_met_when_they_come) {
  fake_cluster all;
  auto& b = all.start("b", 2, 4002);
  auto& c = all.start("c", 3, 4003);
  const auto joined = all.join_seeds(c, {on_port(4001), on_port(4002)}, 10'000 * ms);
  BOOST_TEST_REQUIRE(joined->value.has_value());
  BOOST_TEST(joined->value->name == "b");
  all.pass(5'000 * ms);
  auto& a = all.start("a", 1, 4001);  // joins nobody
  all.pass(longest_pause);
  CHECK_NAMES(all.peers(a), "b", "c");
  CHECK_NAMES(all.peers(b), "a", "c");
  CHECK_NAMES(all.peers(c), "a", "b");
  BOOST_TEST(joined->count == 1);
  const auto dialled = all.dialled;
  all.pass(longest_pause);
  BOOST_TEST(all.dialled == dialled);  // seeds that are met are not dialled
}

BOOST_AUTO_TEST_CASE(a_node_among_its_own_seeds_begins_without_those_that_are_not_there_and_meets_them_later) {
  fake_cluster all;
  const names of_all{on_port(4001), on_port(4002), on_port(4003)};
  auto& a = all.start("a", 1, 4001);
  const auto alone = all.join_seeds(a, of_all, for_ever);
  BOOST_TEST_REQUIRE(alone->value.has_value());
  BOOST_TEST(alone->value->name == "a");
  BOOST_TEST(all.dialled == 2);
  auto& b = all.start("b", 2, 4002);
  BOOST_TEST(all.join_seeds(b, of_all, for_ever)->value.value().name == "a");
  CHECK_NAMES(all.peers(a), "b");
  CHECK_NAMES(all.peers(b), "a");
}

BOOST_AUTO_TEST_CASE(a_node_that_its_seed_leads_to_by_another_name_knows_itself) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  const auto joined = all.join_seeds(a, {"a.example:4001", on_port(4002)}, for_ever);
  BOOST_TEST_REQUIRE(joined->value.has_value());
  BOOST_TEST(joined->value->name == "a");
  BOOST_TEST(a.news.empty());
}

BOOST_AUTO_TEST_CASE(a_node_among_its_own_seeds_waits_five_seconds_for_one_that_says_nothing) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  const auto joined = all.join_seeds(a, {on_port(4001), on_port(all.mute_port)}, 60'000 * ms);
  all.pass(4'900 * ms);
  BOOST_TEST(joined->count == 0);
  all.pass(200 * ms);
  BOOST_TEST(joined->value.has_value());
}

BOOST_AUTO_TEST_CASE(two_halves_that_began_apart_grow_together) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  all.problems[4001] = all.problems[4002] = caf::error(caf::sec::request_timeout);
  auto& c = all.start("c", 3, 4003);
  auto& d = all.start("d", 4, 4004);
  all.join_seeds(a, {on_port(4001), on_port(4002)}, for_ever);
  all.join_seeds(b, {on_port(4001), on_port(4002)}, for_ever);
  all.join(a, 4003);
  all.join(b, 4004);
  CHECK_NAMES(all.peers(a), "c");
  CHECK_NAMES(all.peers(b), "d");
  all.problems.clear();
  all.pass(longest_pause);
  for (auto* node : {&a, &b, &c, &d}) BOOST_TEST(all.peers(*node).size() == 3U, node->who.name);
}

BOOST_AUTO_TEST_CASE(a_seed_that_has_left_in_order_and_comes_back_is_met_without_being_asked) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& b = all.start("b", 2, 4002);
  BOOST_TEST(all.join_seeds(b, {on_port(4001)}, for_ever)->value.has_value());
  all.ask<caf::unit_t>(a.membership, support::leave_atom::value, std::string("stopped"));
  all.end(a);
  CHECK_NAMES(all.peers(b));
  all.pass(10'000 * ms);
  auto& again = all.start("a", 9, 4001);
  all.pass(longest_pause);
  CHECK_NAMES(all.peers(again), "b");
  CHECK_NAMES(all.peers(b), "a");
}

BOOST_AUTO_TEST_CASE(are_waited_for_and_what_was_seen_at_each_is_told_when_the_time_is_over) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  all.problems[4003] = make_error(errc::misuse, "the host name 'x' has no address");
  all.problems[4004] = caf::make_error(caf::sec::disconnect_during_handshake, std::string("TLS failed"));
  const auto joined = all.join_seeds(a, {on_port(4002), on_port(4003), on_port(4004), on_port(all.mute_port)}, 20'000 * ms);
  all.pass(19'990 * ms);
  BOOST_TEST(joined->count == 0);
  all.pass(20 * ms);
  BOOST_TEST_REQUIRE(joined->failure.has_value());
  const std::string text = joined->failure->what();
  for (const auto* part :
       {"met none of the seeds within 20000 ms", "no node listens at 127.0.0.1:4002 (tried for",
        "127.0.0.1:4003: the host name 'x' has no address", "TLS failed (tried for", "no answer from 127.0.0.1:9999 within"})
    BOOST_TEST(contains(text, part), text);
}

BOOST_AUTO_TEST_CASE(are_waited_for_without_end) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  const auto joined = all.join_seeds(a, {on_port(4002)}, for_ever);
  const auto dialled = all.dialled;
  all.pass(60'000 * ms);
  BOOST_TEST(joined->count == 0);
  BOOST_TEST(all.dialled - dialled < 100);
  all.start("b", 2, 4002);
  all.pass(1'100 * ms);
  BOOST_TEST(joined->value.has_value());
}

// A member that is silent is no seed: a live seed tells of it. Or it is one.
BOOST_AUTO_TEST_CASE(one_of_which_is_there_is_enough_though_members_are_silent) {
  for (const bool is_seed : {false, true})
    for (const std::int64_t wait : {1'000 * ms, 500 * ms, for_ever}) {
      fake_cluster all;
      auto& silent = all.start("silent", 1, 4001);
      auto& b = all.start("b", 2, 4002);
      all.join(b, 4001);
      *silent.mute = true;
      auto& c = all.start("c", 3, 4003);
      const auto joined = all.join_seeds(c, is_seed ? names{on_port(4001), on_port(4002)} : names{on_port(4002)}, wait);
      all.pass(1'100 * ms);
      BOOST_TEST_REQUIRE(joined->value.has_value());
      BOOST_TEST(joined->value->name == "b");
      *silent.mute = false;
      all.pass(longest_pause);
      CHECK_NAMES(all.peers(c), "b", "silent");
    }
}

BOOST_AUTO_TEST_CASE(a_node_among_its_own_seeds_begins_when_its_time_is_over) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  const auto joined = all.join_seeds(a, {on_port(4001), on_port(all.mute_port)}, 2'000 * ms);
  all.pass(2'100 * ms);
  BOOST_TEST(joined->value.has_value());
}

BOOST_AUTO_TEST_CASE(that_all_refuse_end_the_start_at_once_with_their_reason) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  auto& second = all.start("a", 2, 4002);
  const auto joined = all.join_seeds(second, {on_port(4001)}, for_ever);
  all.pass(1'000 * ms);
  BOOST_TEST_REQUIRE(joined->failure.has_value());
  BOOST_TEST((joined->failure->code() == errc::refused));
  BOOST_TEST(std::string(joined->failure->what()).starts_with("the name 'a' is taken by node 'a'"), joined->failure->what());
  BOOST_TEST(a.news.empty());
}

BOOST_AUTO_TEST_CASE(one_of_which_refuses_are_waited_for) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  all.problems[4002] = make_error(errc::refused, "not of this cluster");
  const auto joined = all.join_seeds(a, {on_port(4002), on_port(4003)}, 5'000 * ms);
  all.pass(4'000 * ms);
  BOOST_TEST(joined->count == 0);
  all.start("c", 3, 4003);
  all.pass(1'000 * ms);
  BOOST_TEST_REQUIRE(joined->value.has_value());
  BOOST_TEST(joined->value->name == "c");
}

BOOST_AUTO_TEST_CASE(are_asked_again_if_another_member_does_not_take_the_node_in_yet) {
  fake_cluster all;
  all.start("s", 1, 4001);
  auto& x = all.start("x", 2, 4002);
  all.join(x, 4001);
  all.problems[4002] = make_error(errc::peer_down, "an earlier node of this name is not gone yet");
  auto& b = all.start("b", 3, 4003);
  const auto joined = all.join_seeds(b, {on_port(4001)}, for_ever);
  all.pass(1'000 * ms);
  BOOST_TEST(!joined->failure.has_value());
  all.problems.clear();
  all.pass(longest_pause);
  BOOST_TEST_REQUIRE(joined->value.has_value());
  CHECK_NAMES(all.peers(b), "s", "x");
}

BOOST_AUTO_TEST_CASE(that_a_node_waits_for_fail_when_the_node_stops) {
  fake_cluster all;
  auto& a = all.start("a", 1, 4001);
  const auto joined = all.join_seeds(a, {on_port(4002)}, for_ever);
  all.ask<caf::unit_t>(a.membership, support::leave_atom::value, std::string("stopped"));
  BOOST_TEST_REQUIRE(joined->failure.has_value());
  BOOST_TEST((joined->failure->code() == errc::stopping));
}

BOOST_AUTO_TEST_SUITE_END()
