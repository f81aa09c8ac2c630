// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/member_table.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "support/contains.hpp"
#include "support/stderr_of_process.hpp"

namespace {

using troupe::bond;
using troupe::member;
using troupe::node_id;
using troupe::membership::clock_estimate;
using troupe::membership::known_peer;
using troupe::membership::member_table;
using troupe::membership::peer_change;

member node(std::uint64_t id, std::string name, std::uint16_t port = 0) {
  return {std::move(name), node_id{id}, "127.0.0.1", port};
}

using troupe::test::contains;

constexpr std::int64_t interval = 250'000'000;
constexpr std::int64_t minute = 60'000'000'000;

/// A table of the node "driver". Its peers are "watcher", which tells news, and "stage".
struct table_with_stage : member_table {
  explicit table_with_stage(std::uint16_t port) : member_table(node(1, "driver", 4000)), stage(node(3, "stage", port)) {
    met(watcher, nullptr, {}, way::hears, now);
    met(stage, nullptr, {}, way::hears, now);
  }

  /// The watcher tells that the stage is gone, and that another node has its name.
  void hear_of(const member& successor) {
    hear(watcher.id, {{stage, 0, troupe::member_state::gone}, {successor, 0, troupe::member_state::up}}, now);
  }
  /// How often the table dials the node in that time. No dial reaches a node.
  int dials_of(node_id who, std::int64_t time_ns) {
    int result = 0;
    for (const auto until = now + time_ns; now < until; now += interval) {
      answered(watcher.id, between(watcher.id), now);
      for (const auto& each : beat(now, [](const known_peer& peer) { return peer.is_up; }).dials) {
        result += each.id == who ? 1 : 0;
        dialled(each.id, dial_end::not_reached, now);
      }
    }
    return result;
  }

  std::int64_t now = 0;
  const member watcher = node(2, "watcher", 4001);
  const member stage;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_clock_is_estimated_from_the_middle_of_a_round_trip) {
  clock_estimate clock;
  BOOST_TEST(!clock.known());
  clock.add(1000, 5000 + 1050, 1100);
  BOOST_TEST(clock.known());
  BOOST_TEST(clock.offset_ns() == 5000);
}

BOOST_AUTO_TEST_CASE(a_slower_round_trip_does_not_worsen_the_estimate_and_a_faster_one_improves_it) {
  clock_estimate clock;
  clock.add(0, 5000 + 90, 100);  // 40 ns off
  clock.add(1000, 5000 + 1900, 2000);
  BOOST_TEST(clock.offset_ns() == 5040);
  clock.add(3000, 5000 + 3010, 3020);
  BOOST_TEST(clock.offset_ns() == 5000);
}

BOOST_AUTO_TEST_CASE(a_drifting_clock_is_followed) {
  clock_estimate clock;
  clock.add(0, 10, 20);
  for (int i = 1; i <= 100; ++i) clock.add(1000 * i, 1000 * i + 100 + 7000, 1000 * i + 200);
  BOOST_TEST(clock.offset_ns() == 7000);
}

BOOST_AUTO_TEST_CASE(an_answer_before_its_heartbeat_is_ignored) {
  clock_estimate clock;
  clock.add(100, 5000, 50);
  BOOST_TEST(!clock.known());
}

BOOST_AUTO_TEST_CASE(times_that_no_clock_shows_are_ignored) {
  using limits = std::numeric_limits<std::int64_t>;
  for (const auto extreme : {limits::min(), limits::min() + 1, limits::max() - 1, limits::max()})
    for (const auto other : {std::int64_t{-1000}, std::int64_t{1000}}) {
      clock_estimate clock;
      clock.add(extreme, 5000, other);
      clock.add(other, extreme, other + 100);
      clock.add(other, 5000, extreme);
      BOOST_TEST(!clock.known(), extreme << " with " << other);
      clock.add(1000, 5000 + 1050, 1100);
      BOOST_TEST(clock.offset_ns() == 5000);
    }
}

BOOST_AUTO_TEST_CASE(who_cannot_be_a_peer_is_told_why) {
  member_table table(node(1, "driver", 4000));
  BOOST_TEST(table.objection(node(2, "stage1"), table.self()) == "");
  BOOST_TEST(contains(table.objection(node(0, "stage1"), table.self()), "an id"));
  BOOST_TEST(contains(table.objection(node(1, "driver"), table.self()), "can't join itself"));
  BOOST_TEST(contains(table.objection(node(2, "driver"), table.self()), "the name 'driver' is taken"));
  BOOST_TEST(contains(table.objection(node(2, "a/b"), table.self()), "letters, digits"));
}

// ME-4
BOOST_AUTO_TEST_CASE(a_name_is_free_again_when_its_node_has_gone) {
  member_table table(node(1, "driver"));
  table.met(node(2, "stage1"), nullptr, {}, member_table::way::hears, 0);
  BOOST_TEST_REQUIRE(table.rival(node(3, "stage1")) != nullptr);
  BOOST_TEST((table.rival(node(3, "stage1"))->who.id == node_id{2}));
  BOOST_TEST(table.rival(node(2, "stage1")) == nullptr);
  BOOST_TEST(table.rival(node(3, "stage2")) == nullptr);
  table.left(node_id{2}, "left", 0);
  BOOST_TEST(table.rival(node(3, "stage1")) == nullptr);
  BOOST_TEST(table.objection(node(3, "stage1"), table.self()) == "");
}

BOOST_AUTO_TEST_CASE(to_meet_two_peers_of_one_name_ends_the_process) {
  member_table table(node(1, "driver"));
  table.met(node(2, "stage1"), nullptr, {}, member_table::way::hears, 0);
  const auto [text, signal] =
    troupe::test::stderr_of_process([&] { table.met(node(3, "stage1"), nullptr, {}, member_table::way::hears, 0); });
  BOOST_TEST(signal == SIGABRT);
  BOOST_TEST(contains(text, "living_rival(who) == nullptr"), text);
}

// MT-9
BOOST_AUTO_TEST_CASE(a_successor_is_dialled_once_its_predecessor_is_gone) {
  table_with_stage table(5000);
  const auto successor = node(4, "stage", 5001);
  table.connection_lost(table.stage.id, table.now);
  table.hear_of(successor);
  BOOST_TEST(table.take_strangers(table.now).empty());
  BOOST_TEST(table.want(successor.id, minute, table.now).dials.empty());
  BOOST_TEST(table.want("stage", minute, table.now).dials.empty());
  BOOST_TEST(table.dials_of(successor.id, 20 * interval) == 0);
  table.dialled(table.stage.id, member_table::dial_end::nobody_listens, table.now);
  BOOST_TEST(table.dials_of(successor.id, 2 * interval) > 0);
}

// MT-9
BOOST_AUTO_TEST_CASE(a_successor_at_the_address_of_its_predecessor_is_dialled_unless_that_is_up) {
  table_with_stage table(5000);
  const auto successor = node(4, "stage", 5000);
  table.hear_of(successor);
  BOOST_TEST(table.want(successor.id, minute, table.now).dials.empty());
  table.connection_lost(table.stage.id, table.now);
  BOOST_TEST(table.want(successor.id, minute, table.now).dials.size() == 1u);
}

// MT-2, MT-9
BOOST_AUTO_TEST_CASE(a_node_that_is_gone_is_not_dialled_while_another_one_has_its_name) {
  for (const std::uint16_t port : {5000, 5001}) {
    table_with_stage table(5000);
    const auto successor = node(4, "stage", port);
    table.connection_lost(table.stage.id, table.now);
    table.dialled(table.stage.id, member_table::dial_end::nobody_listens, table.now);
    BOOST_TEST(table.dials_of(table.stage.id, minute) > 0);
    table.met(successor, nullptr, {}, member_table::way::hears, table.now);
    BOOST_TEST(table.dials_of(table.stage.id, minute) == 0);
    table.left(successor.id, "left", table.now);
    const bool another_listened_there = port == 5000;
    BOOST_TEST((table.dials_of(table.stage.id, minute) == 0) == another_listened_there);
  }
}

// ME-1
BOOST_AUTO_TEST_CASE(a_peer_is_gone_once) {
  member_table table(node(1, "driver"));
  table.met(node(2, "stage1"), nullptr, {}, member_table::way::hears, 0);
  BOOST_TEST(table.left(node_id{2}, "first", 0).changes.size() == 1u);
  BOOST_TEST(table.left(node_id{2}, "second", 0).changes.empty());
  BOOST_TEST(*table.gone(node_id{2}) == "first");
  BOOST_TEST(table.left(node_id{3}, "never known", 0).changes.empty());
  BOOST_TEST(table.gone(node_id{3}) == nullptr);
}

// ME-2
BOOST_AUTO_TEST_CASE(three_heartbeats_in_a_row_without_an_answer_make_a_peer_unreachable) {
  member_table table(node(1, "driver"));
  table.met(node(2, "stage1"), nullptr, {}, member_table::way::hears, 0);
  const auto beat = [&](bool hears = false) { return table.beat(0, [&](const known_peer&) { return hears; }); };
  BOOST_TEST(beat().changes.empty());  // the first is sent
  BOOST_TEST(beat().changes.empty());  // one missed
  BOOST_TEST(beat().changes.empty());  // two
  table.answered(node_id{2}, {}, 0);
  for (int i = 0; i < 3; ++i) BOOST_TEST(beat().changes.empty());
  BOOST_TEST(beat(true).changes.empty());  // other bytes come
  const auto changes = beat().changes;
  BOOST_TEST_REQUIRE(changes.size() == 1u);
  BOOST_TEST((changes.front().what == peer_change::kind::unreachable));
  BOOST_TEST((changes.front().who.id == node_id{2}));
  BOOST_TEST((table.between(node_id{2}) == bond{0, 1}));
}

BOOST_AUTO_TEST_CASE(an_answer_from_an_ended_connection_makes_no_peer_up) {  // MT-1
  table_with_stage table(4002);
  const auto no_sign = [](const known_peer&) { return false; };
  while (table.find(table.stage.id)->is_connected) table.beat(table.now += interval, no_sign);
  const auto theirs = table.between(table.stage.id);
  BOOST_TEST(table.answered(table.stage.id, theirs, table.now).changes.empty());
  BOOST_TEST(table.find_up(table.stage.id) == nullptr);
  const auto steps = table.met(table.stage, nullptr, theirs, member_table::way::answers, table.now);
  BOOST_REQUIRE(!steps.changes.empty());
  BOOST_TEST((steps.changes.front().what == peer_change::kind::up_again));
  BOOST_TEST(!table.connection_lost(table.stage.id, table.now).changes.empty());
}

BOOST_AUTO_TEST_CASE(members_that_are_up_are_listed_by_name) {
  member_table table(node(1, "driver"));
  BOOST_TEST(table.names() == "none");
  for (const auto& who : {node(2, "b"), node(3, "a"), node(4, "c")}) table.met(who, nullptr, {}, member_table::way::hears, 0);
  table.connection_lost(node_id{4}, 0);
  BOOST_TEST(table.names() == "a, b");
  BOOST_TEST(table.members().front().name == "a");
  BOOST_TEST_REQUIRE(table.find_up("b") != nullptr);
  BOOST_TEST((table.find_up("b")->who.id == node_id{2}));
  BOOST_TEST(table.find_up("c") == nullptr);
  BOOST_TEST(table.find_up("driver") == nullptr);
}

// MT-3
BOOST_AUTO_TEST_CASE(of_the_nodes_that_are_gone_the_newest_are_kept) {
  member_table table(node(1, "driver"));
  const auto count = member_table::most_gone + 10;
  for (std::uint64_t i = 0; i < count; ++i) {
    const node_id id{i + 2};
    table.met(node(id.value, "n" + std::to_string(i)), nullptr, {}, member_table::way::hears, 0);
    table.left(id, "left", static_cast<std::int64_t>(i));
  }
  BOOST_TEST(table.gone(node_id{11}) == nullptr);
  BOOST_TEST(table.gone(node_id{12}) != nullptr);
  BOOST_TEST(table.gone(node_id{count + 1}) != nullptr);
}
