// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/roster.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

namespace {

using troupe::member;
using troupe::member_news;
using troupe::member_state;
using troupe::node_id;
using troupe::membership::roster;
using kind = roster::change::kind;

constexpr std::int64_t second_ns = 1'000'000'000;

member fellow(std::uint64_t id, const std::string& name = {}) {
  return {name.empty() ? "n" + std::to_string(id) : name, node_id{id}, "10.0.0." + std::to_string(id % 250), 4000};
}

roster roster_of(std::uint64_t id, const std::vector<member_news>& heard = {}) {
  roster result(fellow(id), {std::chrono::seconds(2), std::chrono::seconds(30), std::chrono::seconds(30)});
  for (const auto& each : heard) result.hear({}, {{each.who, each.incarnation, member_state::up}, each}, 0);
  result.take_news();
  result.take_changes();
  return result;
}

std::vector<member_news> ups(std::uint64_t first, std::uint64_t last) {
  std::vector<member_news> result;
  for (auto id = first; id <= last; ++id) result.push_back({fellow(id), 0, member_state::up});
  return result;
}

std::vector<kind> kinds(roster& of) {
  std::vector<kind> result;
  for (const auto& each : of.take_changes()) result.push_back(each.what);
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rosters)

BOOST_AUTO_TEST_CASE(the_higher_incarnation_counts_and_then_the_later_state) {  // RT-1
  for (const auto first : {member_state::up, member_state::suspected, member_state::gone, member_state::left})
    for (const auto second : {member_state::up, member_state::suspected, member_state::gone, member_state::left})
      for (const std::uint32_t incarnation : {0u, 1u, 2u}) {
        auto mine = roster_of(1, {{fellow(2), 1, first}});
        mine.hear({}, {{fellow(2), incarnation, second}}, 0);
        const bool is_newer = incarnation > 1 || (incarnation == 1 && second > first);
        const auto known = mine.about(node_id{2});
        BOOST_TEST_REQUIRE(known.size() == 1u);
        BOOST_TEST((known[0].state == (is_newer ? second : first)));
        BOOST_TEST(known[0].incarnation == (is_newer ? incarnation : 1u));
        BOOST_TEST(mine.has_news() == is_newer);
      }
}

BOOST_AUTO_TEST_CASE(a_node_contradicts_what_is_wrong_about_itself) {  // RT-2
  auto mine = roster_of(1);
  mine.hear(node_id{2}, {{fellow(1), 0, member_state::up}}, 0);
  BOOST_TEST(!mine.has_news());
  std::uint32_t expected = 0;
  for (const auto state : {member_state::suspected, member_state::gone, member_state::left}) {
    mine.hear(node_id{2}, {{fellow(1), expected, state}}, 0);
    const auto news = mine.take_news();
    BOOST_TEST_REQUIRE(news.size() == 1u);
    BOOST_TEST((news[0].news.who.id == node_id{1}));
    BOOST_TEST(news[0].news.incarnation == ++expected);
    BOOST_TEST((news[0].news.state == member_state::up));
    BOOST_TEST((news[0].from == node_id{}));  // so the neighbour that told it hears the answer
    mine.hear(node_id{2}, {{fellow(1), expected - 1, state}}, 0);
    BOOST_TEST(!mine.has_news());  // it is said already
  }
}

BOOST_AUTO_TEST_CASE(a_suspected_member_is_unreachable_after_a_while_and_gone_later_unless_it_contradicts) {
  auto mine = roster_of(1, ups(2, 3));
  mine.accuse(node_id{2}, 0);
  mine.accuse(node_id{3}, 0);
  mine.beat(1 * second_ns);
  BOOST_TEST(mine.is_up(node_id{2}));
  BOOST_TEST(mine.doubts(node_id{2}));
  mine.hear({}, {{fellow(3), 1, member_state::up}}, 1 * second_ns);
  mine.beat(2 * second_ns);
  BOOST_TEST(!mine.is_up(node_id{2}));
  BOOST_TEST(mine.is_up(node_id{3}));
  BOOST_TEST(mine.find(node_id{2}) != nullptr);
  BOOST_TEST((kinds(mine) == std::vector{kind::unreachable}));
  mine.beat(30 * second_ns);
  BOOST_TEST(mine.find(node_id{2}) == nullptr);
  BOOST_TEST(mine.find("n2") == nullptr);
  BOOST_TEST((kinds(mine) == std::vector{kind::gone}));
  mine.hear({}, {{fellow(2), 0, member_state::up}}, 31 * second_ns);
  BOOST_TEST(!mine.is_up(node_id{2}));  // old news
  mine.hear({}, {{fellow(2), 1, member_state::up}}, 31 * second_ns);
  BOOST_TEST(mine.is_up(node_id{2}));
  BOOST_TEST((kinds(mine) == std::vector{kind::arrived}));
}

BOOST_AUTO_TEST_CASE(a_node_accuses_a_member_again_after_a_while_alone) {
  auto mine = roster_of(1, ups(2, 2));
  mine.accuse(node_id{2}, 0);
  mine.hear({}, {{fellow(2), 1, member_state::up}}, 1 * second_ns);
  mine.accuse(node_id{2}, 29 * second_ns);
  BOOST_TEST(!mine.doubts(node_id{2}));
  mine.accuse(node_id{2}, 30 * second_ns);
  BOOST_TEST(mine.doubts(node_id{2}));
  mine.hear({}, {{fellow(2), 2, member_state::up}}, 31 * second_ns);
  mine.met(fellow(2), 2, 31 * second_ns);
  mine.accuse(node_id{2}, 32 * second_ns);  // the two nodes have spoken since
  BOOST_TEST(mine.doubts(node_id{2}));
}

BOOST_AUTO_TEST_CASE(a_member_that_this_node_meets_is_told_what_it_has_to_contradict) {
  auto mine = roster_of(1, {{fellow(2), 3, member_state::gone}});
  const auto news = mine.met(fellow(2), 3, 0);
  BOOST_TEST_REQUIRE(news.size() == 1u);
  BOOST_TEST((news[0].state == member_state::gone));
  BOOST_TEST(mine.met(fellow(2), 4, 0).empty());
  BOOST_TEST(mine.is_up(node_id{2}));
}

BOOST_AUTO_TEST_CASE(up_to_eight_members_are_all_neighbours_and_of_many_a_few) {  // RT-4
  auto mine = roster_of(1, ups(2, 9));
  BOOST_TEST(mine.neighbours().size() == 8u);
  constexpr std::uint64_t count = 200;
  std::vector<roster> all;
  for (std::uint64_t id = 1; id <= count; ++id) {
    auto others = ups(1, count);
    std::erase_if(others, [&](const member_news& each) { return each.who.id.value == id; });
    all.push_back(roster_of(id, others));
  }
  for (std::uint64_t a = 1; a <= count; ++a) {
    BOOST_TEST(all[a - 1].neighbours().size() >= 4u);
    BOOST_TEST(all[a - 1].neighbours().size() <= 6u);
    for (const auto b : all[a - 1].neighbours()) BOOST_TEST(all[b.value - 1].is_neighbour(node_id{a}));
  }
}

BOOST_AUTO_TEST_CASE(news_is_passed_on_once_with_the_neighbour_that_told_it) {  // RT-3
  auto mine = roster_of(1);
  mine.hear(node_id{7}, ups(2, 3), 0);
  mine.hear(node_id{8}, ups(3, 4), 0);
  auto news = mine.take_news();
  BOOST_TEST(news.size() == 3u);
  for (const auto& each : news) BOOST_TEST((each.from == node_id{each.news.who.id.value == 4 ? 8u : 7u}));
  mine.hear(node_id{9}, ups(2, 4), 0);
  BOOST_TEST(!mine.has_news());
}

BOOST_AUTO_TEST_CASE(digests_are_equal_if_two_nodes_have_heard_the_same_of_others) {
  auto one = roster_of(1, ups(2, 20));
  auto two = roster_of(2, ups(3, 20));
  BOOST_TEST(one.digest({}, {}) != two.digest({}, {}));
  BOOST_TEST(one.digest(node_id{1}, node_id{2}) == two.digest(node_id{2}, node_id{1}));
  two.accuse(node_id{9}, 0);
  BOOST_TEST(one.digest(node_id{1}, node_id{2}) != two.digest(node_id{2}, node_id{1}));
  const auto missing = two.beyond(one.all());
  BOOST_TEST_REQUIRE(missing.size() == 1u);
  one.hear({}, missing, 0);
  BOOST_TEST(one.digest(node_id{1}, node_id{2}) == two.digest(node_id{2}, node_id{1}));
}

BOOST_AUTO_TEST_CASE(a_name_belongs_to_one_member) {
  auto mine = roster_of(1, {{fellow(2, "stage"), 0, member_state::up}});
  mine.hear({}, {{fellow(3, "stage"), 0, member_state::up}}, 0);
  mine.beat(1 * second_ns);
  BOOST_TEST((kinds(mine) == std::vector{kind::contested}));  // node 2 may have ended
  BOOST_TEST(mine.is_left_out(node_id{3}));
  mine.beat(2 * second_ns);
  mine.beat(3 * second_ns);
  BOOST_TEST((kinds(mine) == std::vector{kind::clash}));  // said once
  BOOST_TEST((mine.find("stage")->id == node_id{2}));
  auto restarted = fellow(4, "stage");
  restarted.host = fellow(2).host;  // the same address
  mine.hear({}, {{restarted, 0, member_state::up}}, 0);
  BOOST_TEST((mine.find("stage")->id == node_id{4}));
  mine.hear({}, {{fellow(5, "n1"), 0, member_state::up}}, 0);  // this node's own name
  BOOST_TEST(mine.find(node_id{5}) == nullptr);
}

BOOST_AUTO_TEST_CASE(hearsay_ends_no_member_whose_name_and_address_another_one_has) {
  auto mine = roster_of(1, {{fellow(2, "stage"), 0, member_state::up}});
  auto restarted = fellow(4, "stage");
  restarted.host = fellow(2).host;
  mine.hear(node_id{7}, {{restarted, 0, member_state::up}}, 0);  // it may be older than node 2
  BOOST_TEST((mine.find("stage")->id == node_id{2}));
  mine.hear(node_id{7}, {{fellow(2, "stage"), 0, member_state::gone}}, 0);
  BOOST_TEST((mine.find("stage")->id == node_id{4}));
  mine.hear(node_id{7}, {{fellow(2, "stage"), 1, member_state::up}}, 0);  // node 2 lives after all, but its name is taken
  BOOST_TEST((mine.find("stage")->id == node_id{4}));
  BOOST_TEST(!mine.is_up(node_id{2}));
}

BOOST_AUTO_TEST_CASE(a_list_may_name_a_successor_before_its_predecessor) {
  auto mine = roster_of(1, {{fellow(5, "stage"), 0, member_state::up}});
  mine.hear(node_id{7}, {{fellow(3, "stage"), 0, member_state::up}, {fellow(5, "stage"), 0, member_state::gone}}, 0);
  BOOST_TEST(!mine.is_left_out(node_id{3}));
  BOOST_TEST((mine.find("stage")->id == node_id{3}));
}

BOOST_AUTO_TEST_CASE(a_successor_is_a_member_once_its_predecessor_is_gone) {
  auto mine = roster_of(1, {{fellow(2, "stage"), 0, member_state::up}});
  mine.hear(node_id{7}, {{fellow(3, "stage"), 4, member_state::up}}, 0);
  mine.end(node_id{2}, member_state::gone, "ended", 0);
  mine.beat(1);
  BOOST_TEST((kinds(mine) == std::vector{kind::contested, kind::gone, kind::arrived}));
  BOOST_TEST((mine.find("stage")->id == node_id{3}));
  BOOST_TEST(mine.about(node_id{3}).at(0).incarnation == 4u);
  BOOST_TEST(mine.take_news().size() == 2u);
}

BOOST_AUTO_TEST_CASE(news_that_can_not_be_true_changes_nothing) {
  auto mine = roster_of(1);
  auto no_host = fellow(3);
  no_host.host.clear();
  auto long_host = fellow(4);
  long_host.host.assign(254, 'h');
  constexpr auto highest = std::numeric_limits<std::uint32_t>::max();
  mine.hear({},
            {{fellow(0), 0, member_state::up},
             {fellow(2, "no valid name"), 0, member_state::up},
             {no_host, 0, member_state::up},
             {long_host, 0, member_state::up},
             {fellow(5), highest, member_state::up},
             {fellow(1), highest, member_state::suspected}},
            0);
  BOOST_TEST(mine.members().empty());
  BOOST_TEST(!mine.has_news());
  BOOST_TEST(mine.incarnation() == 0u);
}

// A node that tells of itself under another name would otherwise leave names of others, and names of nobody, to members.
BOOST_AUTO_TEST_CASE(a_member_keeps_its_name_whoever_tells_another_one) {  // RT-7
  auto mine = roster_of(1, ups(2, 4));
  auto renamed = fellow(3, "zzz");
  renamed.host = "10.9.9.9";
  mine.hear(node_id{3}, {{renamed, 1, member_state::up}, {renamed, 2, member_state::gone}}, 0);
  BOOST_TEST(mine.is_up(node_id{3}));
  BOOST_TEST_REQUIRE(mine.find("n3") != nullptr);
  BOOST_TEST(mine.find("n3")->host == fellow(3).host);
  BOOST_TEST(mine.find("zzz") == nullptr);
  BOOST_TEST(!mine.has_news());
  mine.end(node_id{3}, member_state::left, "ended", 0);
  mine.hear(node_id{2}, {{renamed, 9, member_state::up}}, 0);
  BOOST_TEST(!mine.is_up(node_id{3}));
  // The graves of more members than a roster keeps take the one of the renamed member with them.
  for (std::uint64_t id = 10; id < 12 + roster::most_gone; ++id)
    mine.hear({}, {{fellow(id), 0, member_state::up}, {fellow(id), 0, member_state::gone}}, static_cast<std::int64_t>(id));
  mine.beat(1 * second_ns);
  BOOST_TEST(mine.about(node_id{3}).empty());
  for (const auto* name : {"n3", "zzz"}) BOOST_TEST(mine.find(name) == nullptr);
  for (const auto* name : {"n2", "n4"}) BOOST_TEST(mine.find(name) != nullptr);
}

BOOST_AUTO_TEST_CASE(what_a_member_itself_says_of_its_name_counts) {  // RT-7
  auto mine = roster_of(1, ups(2, 2));
  auto wrong = fellow(3, "zzz");
  wrong.port = 9;
  mine.hear(node_id{2}, {{wrong, 7, member_state::up}}, 0);
  BOOST_TEST(mine.find("zzz") != nullptr);
  mine.met(fellow(3), 0, 0);
  BOOST_TEST(mine.find("zzz") == nullptr);
  BOOST_TEST_REQUIRE(mine.find("n3") != nullptr);
  BOOST_TEST(mine.find("n3")->port == fellow(3).port);
  mine.met(fellow(3, "n2"), 0, 0);  // which another member has
  BOOST_TEST_REQUIRE(mine.find("n2") != nullptr);
  BOOST_TEST((mine.find("n2")->id == node_id{2}));
  BOOST_TEST(mine.find("n3") != nullptr);
  for (const std::uint64_t id : {2, 3}) mine.end(node_id{id}, member_state::left, "ended", 0);
  for (const auto* name : {"n2", "n3", "zzz"}) BOOST_TEST(mine.find(name) == nullptr);
  mine.met(fellow(4), 0, 0);
  BOOST_TEST(mine.find("n4") != nullptr);
}

BOOST_AUTO_TEST_CASE(an_incarnation_never_becomes_lower) {  // RT-2
  auto mine = roster_of(1);
  mine.hear({}, {{fellow(1), roster::most_incarnation, member_state::gone}}, 0);
  BOOST_TEST(mine.incarnation() == roster::most_incarnation);
}

BOOST_AUTO_TEST_CASE(a_full_roster_takes_no_more_members_and_says_so_once) {  // RT-6
  roster::limits how;
  how.most_members = 3;
  roster mine(fellow(1), how);
  mine.hear({}, ups(2, 9), 0);
  BOOST_TEST(mine.members().size() == 3u);
  BOOST_TEST((kinds(mine) == std::vector{kind::arrived, kind::arrived, kind::arrived, kind::clash}));
  mine.end(node_id{2}, member_state::gone, "ended", 0);
  mine.beat(3601 * second_ns);
  mine.hear({}, {{fellow(20), 0, member_state::up}}, 3601 * second_ns);
  BOOST_TEST(mine.is_up(node_id{20}));
}

BOOST_AUTO_TEST_CASE(a_roster_remembers_so_many_members_whose_name_is_taken) {  // RT-6
  auto mine = roster_of(1, ups(2, 3));
  for (std::uint64_t id = 100; id < 101 + roster::most_clashes; ++id)
    mine.hear(node_id{2}, {{fellow(id, "n3"), 0, member_state::up}}, 0);
  BOOST_TEST(mine.is_left_out(node_id{100}));
  BOOST_TEST(!mine.is_left_out(node_id{100 + roster::most_clashes}));
}

BOOST_AUTO_TEST_CASE(a_list_of_all_news_brings_no_members_that_ended_before) {  // RT-5
  auto mine = roster_of(1, ups(5, 5));
  mine.hear_all(node_id{2},
                {{fellow(3), 0, member_state::gone}, {fellow(4), 2, member_state::left}, {fellow(5), 0, member_state::gone}},
                0);
  BOOST_TEST(mine.about(node_id{3}).empty());
  BOOST_TEST(mine.about(node_id{4}).empty());
  BOOST_TEST((kinds(mine) == std::vector{kind::gone}));
}

BOOST_AUTO_TEST_CASE(the_end_of_a_member_may_be_heard_of_before_its_beginning) {
  auto mine = roster_of(1);
  mine.hear(node_id{2}, {{fellow(3), 0, member_state::left}}, 0);
  mine.hear(node_id{4}, {{fellow(3), 0, member_state::up}}, 0);
  BOOST_TEST(!mine.is_up(node_id{3}));
  BOOST_TEST(mine.take_news().size() == 1u);
}

BOOST_AUTO_TEST_CASE(of_the_members_that_are_gone_the_newest_are_kept_for_an_hour) {  // RT-5
  auto mine = roster_of(1);
  for (std::uint64_t id = 2; id < 2 + roster::most_gone + 10; ++id)
    mine.hear({}, {{fellow(id), 0, member_state::up}, {fellow(id), 0, member_state::gone}}, static_cast<std::int64_t>(id));
  mine.beat(1 * second_ns);
  BOOST_TEST(mine.about(node_id{11}).empty());
  BOOST_TEST(!mine.about(node_id{12}).empty());
  mine.beat(3601 * second_ns);
  BOOST_TEST(mine.all().size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
