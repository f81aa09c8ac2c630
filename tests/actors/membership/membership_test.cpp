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
using test::joined_nodes;
using test::two_nodes;

constexpr auto ms = fake_cluster::ms;
constexpr auto interval = fake_cluster::interval;
constexpr auto forget_after = fake_cluster::forget_after;
constexpr auto longest_pause = fake_cluster::longest_pause;

using names = std::vector<std::string>;

using troupe::test::contains;

}  // namespace

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
  BOOST_TEST(all.all.step());
  while (all.scheduler.try_run_once()) continue;
  BOOST_TEST(answered);
}

BOOST_AUTO_TEST_SUITE(heartbeats)

// ME-2
BOOST_FIXTURE_TEST_CASE(that_are_answered_keep_peers_up, joined_nodes) {
  all.pass(50 * interval);
  CHECK_NAMES(a.news, "up b");
  CHECK_NAMES(b.news, "up a");
}

// ME-2
BOOST_FIXTURE_TEST_CASE(of_three_intervals_without_an_answer_make_a_peer_unreachable, joined_nodes) {
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
BOOST_FIXTURE_TEST_CASE(without_an_answer_are_borne_with_for_a_while_if_other_bytes_come, joined_nodes) {
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
BOOST_FIXTURE_TEST_CASE(may_be_missed_twice, joined_nodes) {
  for (int i = 0; i < 5; ++i) {
    *b.mute = true;
    all.pass(2 * interval);
    *b.mute = false;
    all.pass(interval);
  }
  CHECK_NAMES(a.news, "up b");
}

// ME-1
BOOST_FIXTURE_TEST_CASE(and_all_other_ends_are_one_end, joined_nodes) {
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

BOOST_FIXTURE_TEST_CASE(a_peer_that_answers_again_is_up_again_on_both_sides, joined_nodes) {
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

BOOST_FIXTURE_TEST_CASE(two_peers_that_were_cut_off_count_one_separation, joined_nodes) {
  *a.mute = *b.mute = true;
  all.pass(6 * interval);
  *a.mute = *b.mute = false;
  all.pass(10 * interval);
  BOOST_TEST_REQUIRE(a.news.size() == 3);
  BOOST_TEST_REQUIRE(b.news.size() == 3);
  BOOST_TEST(a.news[2] == "up again b");
  BOOST_TEST(b.news[2] == "up again a");
}

BOOST_FIXTURE_TEST_CASE(a_peer_whose_connection_was_lost_is_dialled_and_up_again, joined_nodes) {
  all.cut(b);
  all.pass(3 * interval);
  CHECK_NAMES(a.news, "up b", "unreachable b: connection lost", "up again b");
  CHECK_NAMES(b.news, "up a", "unreachable a: it held this node for unreachable", "up again a");
}

BOOST_FIXTURE_TEST_CASE(a_peer_that_ends_in_the_middle_of_a_greeting_is_gone_soon, joined_nodes) {
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

BOOST_FIXTURE_TEST_CASE(a_node_is_not_greeted_while_its_predecessor_is_unreachable_here, two_nodes) {  // MT-9
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

BOOST_FIXTURE_TEST_CASE(a_peer_that_was_gone_and_lives_starts_over_on_both_sides, joined_nodes) {
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
BOOST_FIXTURE_TEST_CASE(a_peer_that_hears_that_it_was_gone_drops_the_other_too, joined_nodes) {
  *b.mute = true;
  all.pass(forget_after + 10 * interval);
  *b.mute = false;
  all.pass(10 * interval);
  BOOST_TEST((std::find(b.news.begin(), b.news.end(), "gone a: it held this node for gone") != b.news.end()),
             boost::algorithm::join(b.news, "; "));
  CHECK_NAMES(all.peers(a), "b");
  CHECK_NAMES(all.peers(b), "a");
}

BOOST_FIXTURE_TEST_CASE(a_peer_that_ended_and_was_started_again_is_met_without_being_asked, joined_nodes) {
  all.end(b);
  CHECK_NAMES(a.news, "up b", "unreachable b: connection lost",
              "gone b: its process has ended: no program listens at its address");
  auto& next = all.start("b", 3, 4002);
  all.pass(longest_pause);
  BOOST_TEST(a.news.back() == "up b");
  CHECK_NAMES(next.news, "up a");
}

BOOST_FIXTURE_TEST_CASE(a_node_of_another_name_at_the_address_is_not_met, joined_nodes) {
  all.end(b);
  auto& stranger = all.start("of_another_cluster", 3, 4002);
  all.pass(2 * longest_pause);
  BOOST_TEST(stranger.news.empty());
  BOOST_TEST(all.peers(a).empty());
}

// The address that other nodes tell of a member may be that of another node meanwhile.
BOOST_FIXTURE_TEST_CASE(a_node_of_another_name_at_the_address_of_a_stranger_is_not_met, joined_nodes) {
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

BOOST_FIXTURE_TEST_CASE(a_peer_that_left_is_not_dialled, joined_nodes) {
  all.ask<caf::unit_t>(b.membership, support::leave_atom::value, std::string("done"));
  const auto dialled = all.dialled;
  all.pass(forget_after);
  BOOST_TEST(all.dialled == dialled);
  CHECK_NAMES(a.news, "up b", "gone b: left: done");
}

BOOST_FIXTURE_TEST_CASE(nodes_that_could_not_meet_meet_later, joined_nodes) {
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

BOOST_FIXTURE_TEST_CASE(a_lost_connection_is_news_at_once, two_nodes) {
  auto& c = all.start("c", 3, 4003);
  all.join(b, 4001);
  all.join(c, 4001);
  caf::anon_send_exit(b.gateway, caf::exit_reason::remote_link_unreachable);
  caf::anon_send_exit(c.gateway, caf::exit_reason::user_shutdown);
  all.run();
  CHECK_NAMES(a.news, "up b", "up c", "unreachable b: connection lost", "gone c: its node stopped");
}

BOOST_FIXTURE_TEST_CASE(a_farewell_is_news_at_once_and_frees_the_name, joined_nodes) {
  BOOST_TEST(all.ask<caf::unit_t>(b.membership, support::leave_atom::value, std::string("done"))->value.has_value());
  CHECK_NAMES(a.news, "up b", "gone b: left: done");
  auto& next = all.start("b", 3, 4003);
  BOOST_TEST(all.join(next, 4001)->value.has_value());
  BOOST_TEST(a.news.back() == "up b");
}

BOOST_FIXTURE_TEST_CASE(is_told_only_to_who_looks_for_the_node_that_leaves, joined_nodes) {  // MT-8
  auto& other = all.start("other", 3, 4003);
  all.ask<caf::unit_t>(other.membership, support::leave_atom::value, std::string("done"));
  all.ports[4002] = all.ports[4003];
  caf::anon_send_exit(b.gateway, caf::exit_reason::remote_link_unreachable);
  all.pass(8 * interval);
  CHECK_NAMES(a.news, "up b", "unreachable b: connection lost");
}

BOOST_FIXTURE_TEST_CASE(does_not_wait_for_the_mute, joined_nodes) {
  caf::anon_send_exit(a.gateway, caf::exit_reason::kill);
  auto left = all.ask<caf::unit_t>(b.membership, support::leave_atom::value, std::string("done"));
  all.pass(interval);
  BOOST_TEST(left->value.has_value());
  BOOST_TEST(all.ask<caf::unit_t>(b.membership, support::leave_atom::value, std::string("again"))->value.has_value());
}

BOOST_FIXTURE_TEST_CASE(ends_what_waits_and_refuses_what_comes, two_nodes) {
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

BOOST_FIXTURE_TEST_CASE(a_known_peer_or_oneself_is_answered_at_once, joined_nodes) {
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

BOOST_FIXTURE_TEST_CASE(does_not_answer_with_a_peer_that_is_down, joined_nodes) {
  caf::anon_send_exit(b.gateway, caf::exit_reason::kill);
  all.run();
  auto found = all.find(a, "b", 100 * ms);
  all.pass(100 * ms);
  failed(found, errc::unknown_peer, "up are: none");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(subscribers)

BOOST_FIXTURE_TEST_CASE(that_come_late_hear_who_is_up_and_those_that_end_are_forgotten, joined_nodes) {
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
