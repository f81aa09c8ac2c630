// SPDX-License-Identifier: BSD-3-Clause
#include "actors/membership/simulated_cluster.hpp"

#include <algorithm>
#include <cstdint>
#include <set>

#include <boost/test/unit_test.hpp>

namespace {

using troupe::test::simulated_cluster;

simulated_cluster::settings meshed(std::size_t count, std::uint64_t seed = 1) {
  return simulated_cluster::settings::meshed(count, seed);
}

/// Calls `visit` for every two nodes, in either order.
template <class F>
void for_all_pairs(const simulated_cluster& all, const F& visit) {
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = 0; b < all.size(); ++b)
      if (a != b) visit(a, b);
}

/// For how many nodes `who` is not up.
std::size_t missing_at(const simulated_cluster& all, std::size_t who) {
  std::size_t result = 0;
  for (std::size_t at = 0; at < all.size(); ++at) result += at != who && !all.is_up(at, who);
  return result;
}

/// Pairs of nodes of which one is not up for the other.
std::size_t missing_pairs(const simulated_cluster& all) {
  std::size_t result = 0;
  for (std::size_t who = 0; who < all.size(); ++who) result += missing_at(all, who);
  return result;
}

std::uint64_t most_news(const simulated_cluster& all) {
  std::uint64_t result = 0;
  for (std::size_t i = 0; i < all.size(); ++i) result = std::max(result, all.news_sent_by(i));
  return result;
}

/// Messages that a node sends in an interval when nothing happens.
double messages_of_a_node(std::size_t count) {
  simulated_cluster all(meshed(count));
  all.pass(4 * all.interval_ns());
  all.forget_counts();
  all.pass(20 * all.interval_ns());
  return static_cast<double>(all.messages()) / static_cast<double>(20 * count);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(simulated_clusters, *boost::unit_test::label("explored"))

// ME-5, ME-1, MT-1, MT-2
BOOST_AUTO_TEST_CASE(three_nodes_are_up_for_each_other_again_whatever_went_wrong) {
  std::size_t separations = 0;
  std::size_t partings = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    simulated_cluster::settings how;
    how.seed = seed;
    simulated_cluster world(how);
    world.pass(20'000 * simulated_cluster::ms, true);
    world.heal();
    world.pass(70'000 * simulated_cluster::ms);
    for_all_pairs(world, [&](std::size_t a, std::size_t b) {
      BOOST_TEST_REQUIRE(world.is_peer(a, b), "seed " << seed << ": " << b << " is not up for " << a);
      BOOST_TEST_REQUIRE((world.between(a, b) == world.between(b, a)), "seed " << seed << ": two bonds");
    });
    separations += world.separations();
    partings += world.partings();
  }
  BOOST_TEST(separations > 300u);
  BOOST_TEST(partings > 300u);
}

// RT-1, RT-2, RT-4, MT-5: neighbours alone exchange heartbeats and news
BOOST_AUTO_TEST_CASE(six_nodes_in_two_rings_know_all_members_again_whatever_went_wrong) {
  std::size_t partings = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    simulated_cluster::settings how;
    how.count = 6;
    how.seed = seed;
    how.limits.most_in_mesh = 2;
    how.limits.rings = 2;
    how.share_work = false;
    simulated_cluster world(how);
    world.pass(20'000 * simulated_cluster::ms, true);
    world.heal();
    world.pass(100'000 * simulated_cluster::ms);
    for_all_pairs(world, [&](std::size_t a, std::size_t b) {
      BOOST_TEST_REQUIRE(world.is_up(a, b), "seed " << seed << ": " << b << " is not up for " << a);
      const auto& heard = world.table(a).heard_of();
      if (!heard.is_neighbour(world.self(b).id)) return;
      BOOST_TEST_REQUIRE(world.is_peer(a, b), "seed " << seed << ": neighbour " << b << " is no peer of " << a);
      BOOST_TEST_REQUIRE(world.table(b).heard_of().is_neighbour(world.self(a).id), "seed " << seed);
      BOOST_TEST_REQUIRE((world.between(a, b) == world.between(b, a)), "seed " << seed << ": two bonds");
      BOOST_TEST_REQUIRE(heard.digest({}, {}) != 0u);
      BOOST_TEST_REQUIRE(heard.digest(world.self(a).id, world.self(b).id) ==
                           world.table(b).heard_of().digest(world.self(a).id, world.self(b).id),
                         "seed " << seed);
    });
    partings += world.partings();
  }
  BOOST_TEST(partings > 200u);
}

// GN-1, GN-2, GN-3, GN-4, SC-1: nodes restart under names of others, and some greetings are overtaken by a second process
BOOST_AUTO_TEST_CASE(names_have_one_owner_and_greetings_one_answer_whatever_went_wrong) {
  std::size_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    simulated_cluster::settings how;
    how.count = 4;
    how.seed = seed;
    how.has_rivals = true;
    how.overtaken_one_of = seed % 2 == 0 ? 4 : 0;
    simulated_cluster world(how);
    world.pass(20'000 * simulated_cluster::ms, true);
    world.heal();
    world.pass(100'000 * simulated_cluster::ms);
    for_all_pairs(world, [&](std::size_t a, std::size_t b) {
      BOOST_TEST_REQUIRE(world.is_peer(a, b), "seed " << seed << ": " << b << " is not up for " << a);
      BOOST_TEST_REQUIRE((world.between(a, b) == world.between(b, a)), "seed " << seed << ": two bonds");
    });
    for (std::size_t i = 0; i < world.size(); ++i) BOOST_TEST_REQUIRE(world.callers(i) == 0u, "seed " << seed);
    refused += world.names_refused();
  }
  BOOST_TEST(refused > 200u);
}

BOOST_AUTO_TEST_CASE(a_node_sends_no_more_in_a_large_cluster_than_in_a_small_one) {  // RT-4, MT-4
  const auto small = messages_of_a_node(100);
  const auto large = messages_of_a_node(1000);
  BOOST_TEST(small < 5.0);
  BOOST_TEST(large < 1.2 * small);
}

BOOST_AUTO_TEST_CASE(a_thousand_nodes_hear_of_a_frozen_one_within_fifteen_intervals) {  // RT-3
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    simulated_cluster all(meshed(1000, seed));
    all.pass(4 * all.interval_ns());
    all.forget_counts();
    all.freeze(7);
    all.pass(15 * all.interval_ns());
    BOOST_TEST(missing_at(all, 7) == all.size() - 1);
    BOOST_TEST(missing_at(all, 8) == 0u);
    BOOST_TEST(most_news(all) <= 4 * 6u);  // one event, at most one message for each neighbour, and a few for those who saw it
  }
}

BOOST_AUTO_TEST_CASE(a_thousand_nodes_hear_of_one_that_ended_within_four_intervals) {
  simulated_cluster all(meshed(1000));
  all.pass(4 * all.interval_ns());
  all.forget_counts();
  all.kill(7);
  all.pass(4 * all.interval_ns());
  BOOST_TEST(missing_at(all, 7) == all.size() - 1);
  BOOST_TEST(most_news(all) <= 2 * 6u);
}

BOOST_AUTO_TEST_CASE(a_thousand_nodes_hear_of_one_that_leaves_within_four_intervals) {
  simulated_cluster all(meshed(1000));
  all.pass(4 * all.interval_ns());
  all.forget_counts();
  all.leave(7);
  BOOST_TEST(all.sent_by(7) <= 20u);
  all.pass(4 * all.interval_ns());
  BOOST_TEST(missing_at(all, 7) == all.size() - 1);
  BOOST_TEST(all.lost() == 0u);
  BOOST_TEST(most_news(all) <= 2 * 6u);
}

BOOST_AUTO_TEST_CASE(a_thousand_nodes_hear_of_one_that_joins_within_four_intervals) {
  simulated_cluster all(meshed(1000));
  all.pass(4 * all.interval_ns());
  all.forget_counts();
  const auto added = all.join(5);
  all.pass(4 * all.interval_ns());
  BOOST_TEST(missing_at(all, added) == 0u);
  for (std::size_t other = 0; other < added; ++other) BOOST_TEST(all.is_up(added, other));
  BOOST_TEST(most_news(all) <= 2 * 6u);
  const auto& heard = all.table(added).heard_of();
  for (const auto id : heard.neighbours()) BOOST_TEST(all.table(added).find_up(id) != nullptr);
}

BOOST_AUTO_TEST_CASE(a_member_that_cannot_be_reached_is_up_at_no_time) {  // MT-5
  auto how = meshed(2);
  how.is_meshed = false;
  simulated_cluster all(how);
  all.cut(0, 2);
  all.pass(20 * all.interval_ns());
  const auto added = all.join(1);
  for (int step = 0; step < 400; ++step) {
    all.pass(all.interval_ns() / 10);
    BOOST_TEST_REQUIRE(!all.is_up(0, added), "step " << step);
    BOOST_TEST_REQUIRE(!all.is_up(added, 0), "step " << step);
  }
  BOOST_TEST(all.table(0).heard_of().is_up(all.self(added).id));
  BOOST_TEST(all.is_up(0, 1));
  BOOST_TEST(all.is_up(1, added));
  BOOST_TEST(all.is_up(added, 1));
  all.heal();
  all.pass(200 * all.interval_ns());
  BOOST_TEST(missing_pairs(all) == 0u);
}

// MT-8: a firewall may refuse what another host reaches
BOOST_AUTO_TEST_CASE(a_member_that_refuses_one_node_stays_up_for_the_others) {
  simulated_cluster all(meshed(60));
  all.pass(4 * all.interval_ns());
  const auto added = all.size();
  std::set<std::size_t> refused;
  for (std::size_t other = 1; other < added; other += 4) {
    all.reject(other, added);
    all.reject(added, other);
    refused.insert(other);
  }
  all.join(0);
  all.pass(20 * all.interval_ns());
  all.forget_counts();
  for (int step = 0; step < 400; ++step) {
    all.pass(all.interval_ns());
    for (std::size_t other = 0; other < added; ++other)
      BOOST_TEST_REQUIRE((refused.contains(other) || all.is_up(other, added)), other << " at step " << step);
  }
  BOOST_TEST(all.gone() == 0u);
}

BOOST_AUTO_TEST_CASE(a_member_that_freezes_again_and_again_is_found_each_time) {  // MT-8
  simulated_cluster all(meshed(60));
  all.pass(4 * all.interval_ns());
  for (int round = 0; round < 8; ++round) {
    all.freeze(7);
    all.pass(7 * all.interval_ns());
    all.thaw(7);
    all.pass(3 * all.interval_ns());
  }
  BOOST_TEST(missing_at(all, 7) == 0u);
  BOOST_TEST(all.gone() == 0u);
  all.freeze(7);
  all.pass(15 * all.interval_ns());
  BOOST_TEST(missing_at(all, 7) == all.size() - 1);
  BOOST_TEST(all.lost() > 0u);
  BOOST_TEST(all.gone() == 0u);  // it may come back
  all.pass(40'000 * simulated_cluster::ms);
  BOOST_TEST(all.gone() > 0u);
}

// What two nodes have compared in their greeting is not told once more.
BOOST_AUTO_TEST_CASE(a_node_that_joins_tells_its_neighbours_no_news_that_they_know) {
  simulated_cluster all(meshed(300));
  all.pass(4 * all.interval_ns());
  all.forget_counts();
  const auto added = all.join(5);
  all.pass(4 * all.interval_ns());
  for (std::size_t i = 0; i <= added; ++i)
    BOOST_TEST(all.members_told_by(i) <= 20u, i << " told of " << all.members_told_by(i));
}

BOOST_AUTO_TEST_CASE(two_halves_of_a_cluster_find_each_other_again) {
  for (const std::int64_t away_s : {3, 20, 60}) {
    simulated_cluster all(meshed(60));
    all.pass(4 * all.interval_ns());
    all.separate(20);
    all.pass(away_s * 1'000 * simulated_cluster::ms);
    BOOST_TEST(missing_pairs(all) > 0u);
    if (away_s > 10) BOOST_TEST(missing_pairs(all) == 2 * 20 * 40u);
    all.heal();
    all.pass(60'000 * simulated_cluster::ms);
    BOOST_TEST(missing_pairs(all) == 0u, "after " << away_s << " s");
  }
}

BOOST_AUTO_TEST_SUITE_END()
