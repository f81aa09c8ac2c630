// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/roster.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <troupe/actors/membership/neighbours.hpp>

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

// RT-4: nodes whose ids follow each other, as those of a test may, have others beside them in each circle.
BOOST_AUTO_TEST_CASE(the_circles_of_a_cluster_are_not_alike, *boost::unit_test::label("explored")) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 10; ++round) {
    std::vector<node_id> others;
    const auto first = random() >> 1;
    for (std::uint64_t i = 1; i <= 300; ++i) others.push_back({first + i});
    const auto rings = static_cast<std::size_t>(1 + round % 4);
    std::size_t neighbours = 0;
    for (const auto who : others) {
      auto all = others;
      std::erase(all, who);
      neighbours += troupe::membership::neighbours_of(who, all, 8, rings).size();
    }
    BOOST_TEST(neighbours > 300 * 2 * rings * 95 / 100);
  }
}

namespace {

/// A roster, and beside it plain maps that hold what it should know. Draws what other nodes tell, and what this node sees itself.
class drawn_roster {
 public:
  explicit drawn_roster(std::uint64_t seed)
      : random_(seed),
        how_{std::chrono::seconds(2), std::chrono::seconds(30), std::chrono::seconds(20), 1 + seed % 5, 1 + seed % 3} {
    if (seed % 4 == 0) how_.most_members = 5;
    core_ = roster(own_, how_);
  }

  void run(int steps) {
    for (; steps > 0; --steps) {
      now_ += drawn(8) == 0 ? second_ns * drawn(40) : second_ns * drawn(2) / 4;
      if (drawn(200) == 0) now_ += 3600 * second_ns;
      expected_.clear();
      step();
      check();
    }
    check_two_rosters();
  }

 private:
  struct known {
    member who;
    std::uint32_t incarnation = 0;
    member_state state = member_state::up;
    std::int64_t since = 0;
    bool is_unreachable = false;

    bool is_listed() const { return state == member_state::up || state == member_state::suspected; }
    bool is_up() const { return is_listed() && !is_unreachable; }
    std::pair<std::uint32_t, member_state> age() const { return {incarnation, state}; }
  };
  struct waiting {
    member_news news;
    node_id from;
    std::int64_t since = 0;
    bool is_told = false;
  };
  using told = std::pair<kind, node_id>;

  static void require(bool is_so, int line = __builtin_LINE()) {
    if (!is_so) BOOST_REQUIRE_MESSAGE(false, "the roster differs, in line " << line);
  }
  std::int64_t drawn(std::int64_t limit) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(limit)); }

  member draw_member() {
    const auto id = static_cast<std::uint64_t>(1 + drawn(10));
    member who = fellow(id == 1 && drawn(4) != 0 ? 2 : id);
    if (drawn(6) == 0) who.name = "n" + std::to_string(1 + drawn(10));
    if (drawn(8) == 0) who.host = "10.0.0." + std::to_string(1 + drawn(10));
    if (drawn(12) == 0) who.port = 4001;
    switch (drawn(60)) {
      case 0:
        who.name = "not a name";
        break;
      case 1:
        who.host.clear();
        break;
      case 2:
        who.host = std::string(253, 'h');
        break;
      case 3:
        who.host = std::string(254, 'h');
        break;
      case 4:
        who.id = {};
        break;
      default:
        break;
    }
    return who;
  }
  std::uint32_t draw_incarnation() {
    return drawn(300) == 0 ? roster::most_incarnation + static_cast<std::uint32_t>(drawn(2))
                           : static_cast<std::uint32_t>(drawn(4));
  }
  member_news draw_news() { return {draw_member(), draw_incarnation(), static_cast<member_state>(drawn(4))}; }

  void step() {
    const node_id from{static_cast<std::uint64_t>(2 + drawn(9))};
    std::vector<member_news> news;
    for (auto count = 1 + drawn(3); count > 0; --count) news.push_back(draw_news());
    const auto who = draw_member();  // before the next draw: a seed is one life with any compiler
    switch (drawn(12)) {
      case 0:
        return meet(who, draw_incarnation());
      case 1:
        return accuse(from);
      case 2: {
        const auto how = drawn(2) == 0 ? member_state::gone : member_state::left;
        core_.end(from, how, "ended", now_);
        return end(from, how);
      }
      case 3:
        core_.spoke(from);
        accused_.erase(from);
        return;
      case 4:
        core_.hear_all(from, news, now_);
        std::erase_if(news, [&](const member_news& each) {
          const bool is_old = !known{{}, 0, each.state}.is_listed() && !all_.contains(each.who.id);
          if (is_old) waits_.erase(each.who.id);
          return is_old;
        });
        return hear(from, news);
      case 5:
      case 6:
      case 7:
        core_.beat(now_);
        return beat();
      default:
        core_.hear(from, news, now_);
        return hear(from, news);
    }
  }

  void hear(node_id from, const std::vector<member_news>& news) {
    for (const auto& each : news) take(from, each);
    settle();
  }
  void meet(const member& who, std::uint32_t incarnation) {
    const auto answer = core_.met(who, incarnation, now_);
    take({}, {who, incarnation, member_state::up});
    accused_.erase(who.id);
    const auto found = all_.find(who.id);
    if (found != all_.end() && found->second.who.name == who.name && !who.host.empty() && who.host.size() <= 253) {
      found->second.who.host = who.host;
      found->second.who.port = who.port;
    }
    const bool contradicts = found != all_.end() && found->second.state != member_state::up;  // RT-2
    require(answer.size() == (contradicts ? 1u : 0u));
    if (contradicts) require(answer[0].who.id == who.id && answer[0].state == found->second.state);
  }
  void accuse(node_id who) {
    core_.accuse(who, now_);
    const auto found = all_.find(who);
    if (found == all_.end() || found->second.state != member_state::up) return;
    if (accused_.contains(who) && now_ - accused_[who] < how_.accuse_again.count()) return;
    accused_[who] = now_;
    take({}, {found->second.who, found->second.incarnation, member_state::suspected});
  }
  void end(node_id who, member_state how) {
    if (const auto found = all_.find(who); found != all_.end()) take({}, {found->second.who, found->second.incarnation, how});
  }
  void beat() {
    for (auto at = all_.begin(); at != all_.end();) {
      auto& [id, it] = *at++;
      const auto age = now_ - it.since;
      if (it.state == member_state::suspected && !it.is_unreachable && age >= how_.patience.count()) {
        it.is_unreachable = true;
        expected_.emplace_back(kind::unreachable, id);
      }
      if (it.state == member_state::suspected && age >= how_.forget_after.count()) {
        change(it, {it.who, it.incarnation, member_state::gone}, {});
        fresh_.erase(id);
      } else if (!it.is_listed() && age >= 3600 * second_ns) {  // RT-5
        fresh_.erase(id);
        accused_.erase(id);
        all_.erase(id);
      }
    }
    settle();
  }
  void settle() {
    std::vector<waiting> free;
    for (auto at = waits_.begin(); at != waits_.end();) {
      auto& it = at->second;
      const auto* holder = holder_of(it.news.who.name);
      const auto age = now_ - it.since;
      if (holder == nullptr) free.push_back(it);
      if (holder != nullptr && age >= how_.patience.count() && !std::exchange(it.is_told, true))
        expected_.emplace_back(kind::clash, at->first);
      at = holder == nullptr || age >= 3600 * second_ns ? waits_.erase(at) : std::next(at);
    }
    // Of two that wait for one name, either may get it.
    std::partition(free.begin(), free.end(), [&](const waiting& each) { return core_.find(each.news.who.id) != nullptr; });
    for (const auto& each : free) take(each.from, each.news);
  }

  const member* holder_of(const std::string& name) const {
    if (name == own_.name) return &own_;
    for (const auto& [id, it] : all_)
      if (it.is_listed() && it.who.name == name) return &it.who;
    return nullptr;
  }
  /// Whether the name of the member is free, or becomes free: this node has met the member at the address of the holder.
  bool may_have_its_name(node_id from, const member_news& news) {
    const auto* holder = holder_of(news.who.name);
    if (holder == nullptr || holder->id == news.who.id) return true;
    if (holder != &own_ && from == node_id{} && holder->host == news.who.host && holder->port == news.who.port) {
      end(node_id(holder->id), member_state::gone);
      return true;
    }
    const auto [at, is_new] = waits_.try_emplace(news.who.id, waiting{news, from, now_});
    if (is_new && holder != &own_) expected_.emplace_back(kind::contested, holder->id);
    if (std::pair(news.incarnation, news.state) > std::pair(at->second.news.incarnation, at->second.news.state))
      at->second.news = news;
    return false;
  }
  void take(node_id from, const member_news& news) {
    const auto& who = news.who;
    const bool is_end = !known{{}, 0, news.state}.is_listed();
    if (who.id == own_.id) {  // RT-2
      if (news.incarnation < own_incarnation_ || news.incarnation > roster::most_incarnation) return;
      if (news.state == member_state::up && news.incarnation == own_incarnation_) return;
      own_incarnation_ = std::min(roster::most_incarnation, news.incarnation + (news.state == member_state::up ? 0 : 1));
      fresh_[own_.id] = {};
      return;
    }
    if (who.id.value == 0 || who.name == "not a name" || who.host.empty() || who.host.size() > 253) return;  // RT-6
    if (news.incarnation > roster::most_incarnation) return;
    auto at = all_.find(who.id);
    if (at != all_.end() && at->second.who.name != who.name) {  // RT-7
      if (from != node_id{} || (at->second.is_listed() && !may_have_its_name(from, news))) return;
      at->second.who = who;
    }
    if (at != all_.end()) {
      if (std::pair(news.incarnation, news.state) <= at->second.age()) return;  // RT-1
      if (!is_end && !at->second.is_listed() && !may_have_its_name(from, news)) return;
      return change(at->second, news, from);
    }
    const auto not_up = static_cast<std::size_t>(
      std::ranges::count_if(all_, [](const auto& each) { return each.second.state != member_state::up; }));
    if (is_end ? not_up >= how_.most_members : all_.size() >= how_.most_members) {
      if (!is_end && !std::exchange(is_full_told_, true)) expected_.emplace_back(kind::clash, who.id);
      return;
    }
    if (!is_end && !may_have_its_name(from, news)) return;
    waits_.erase(who.id);
    change(all_[who.id] = {who, 0, member_state::left}, news, from);
  }
  void change(known& it, const member_news& news, node_id from) {
    const auto before = it;
    it.who = news.who;
    it.incarnation = news.incarnation;
    it.state = news.state;
    it.is_unreachable = before.is_unreachable && before.state == member_state::suspected && it.state == member_state::suspected;
    if (it.state != member_state::suspected || before.state != member_state::suspected) it.since = now_;
    fresh_[news.who.id] = from;
    if (!before.is_up() && it.is_up()) expected_.emplace_back(kind::arrived, news.who.id);
    if (before.is_listed() && !it.is_listed()) expected_.emplace_back(kind::gone, news.who.id);
  }

  void check() {
    std::vector<told> told_now;
    for (const auto& each : core_.take_changes()) told_now.emplace_back(each.what, each.who.id);
    std::ranges::sort(told_now);
    std::ranges::sort(expected_);
    require(told_now == expected_);
    require(core_.incarnation() == own_incarnation_);
    require(core_.has_news() == !fresh_.empty());
    std::vector<node_id> up;
    for (const auto& [id, it] : all_) {
      const auto about = core_.about(id);
      require(about.size() == 1u);
      require((about[0].incarnation == it.incarnation && about[0].state == it.state && about[0].who.name == it.who.name));
      require((about[0].who.host == it.who.host && about[0].who.port == it.who.port));
      require(core_.doubts(id) == (it.state != member_state::up));
      require(core_.is_up(id) == it.is_up());
      require((core_.find(id) != nullptr) == it.is_listed());
      if (it.is_up()) up.push_back(id);
    }
    require(core_.all().size() == all_.size() + 1);
    const auto members = core_.members();
    require(std::ranges::equal(members, up, {}, &member::id));
    for (int number = 2; number <= 10; ++number) {
      const auto name = "n" + std::to_string(number);
      const auto* holder = holder_of(name);
      const auto* found = core_.find(name);
      require((found == nullptr) == (holder == nullptr));
      if (found != nullptr) require(found->id == holder->id);
      const node_id id{static_cast<std::uint64_t>(number)};
      const auto waits = waits_.find(id);
      require(core_.is_left_out(id) == (waits != waits_.end() && waits->second.news.who.name != own_.name));
    }
    require(core_.neighbours() == neighbours_among(up));  // RT-4
    for (const auto id : up) require(core_.is_neighbour(id) == std::ranges::count(core_.neighbours(), id));
    if (drawn(4) == 0) check_news();
  }
  void check_news() {  // RT-3
    for (const auto& each : core_.take_news()) {
      const auto source = fresh_.extract(each.news.who.id);
      require(!source.empty());
      require(source.mapped() == each.from);
      require(each.number > last_taken_);
      require(each.number <= core_.last_news());
      if (each.news.who.id == own_.id)
        require(each.news.incarnation == own_incarnation_);
      else
        require((all_.at(each.news.who.id).age() == std::pair(each.news.incarnation, each.news.state)));
    }
    require(fresh_.empty());
    last_taken_ = core_.last_news();
  }
  /// The finaliser of MurmurHash3. Nodes of all releases have to agree on their circles.
  static std::uint64_t mix(std::uint64_t x) {
    for (const std::uint64_t factor : {0xff51afd7ed558ccdULL, 0xc4ceb9fe1a85ec53ULL, 1ULL}) x = (x ^ (x >> 33)) * factor;
    return x;
  }
  std::vector<node_id> neighbours_among(const std::vector<node_id>& up) const {
    if (up.size() <= how_.most_in_mesh) return up;
    std::set<node_id> result;
    for (std::uint64_t ring = 0; ring < how_.rings; ++ring) {
      const auto position = [&](node_id who) { return mix(who.value + mix(ring + 1)); };
      std::map<std::uint64_t, node_id> circle;
      for (const auto id : up) circle[position(id) - position(own_.id)] = id;
      result.insert(circle.begin()->second);
      result.insert(circle.rbegin()->second);
    }
    return {result.begin(), result.end()};
  }
  /// What another node hears in a greeting makes the digests of the two equal. Any news makes them differ.
  void check_two_rosters() {
    auto other = roster(fellow(99), {how_.patience, how_.forget_after, how_.accuse_again});
    const auto mine = core_.all();
    other.hear(own_.id, mine, now_);
    const auto digest = [&](const roster& of) { return of.digest(own_.id, node_id{99}); };
    require(digest(core_) == digest(other));
    auto beyond = core_.beyond(other.all());
    require(beyond.empty());
    for (const auto& [id, it] : all_) {
      if (!it.is_listed() || it.incarnation == roster::most_incarnation) continue;
      other.hear(own_.id, {{it.who, it.incarnation + 1, it.state}}, now_);
      require(digest(core_) != digest(other));
      require(core_.beyond(other.all()).empty());
      beyond = other.beyond(mine);
      require(beyond.size() == 2u);  // this piece of news, and what the other node says of itself
      require((beyond[0].who.id == node_id{99} && beyond[1].who.id == id));
      return;
    }
  }

  const member own_ = fellow(1);
  std::mt19937_64 random_;
  roster::limits how_;
  roster core_{own_, how_};
  std::int64_t now_ = second_ns;
  std::uint32_t own_incarnation_ = 0;
  std::uint64_t last_taken_ = 0;
  bool is_full_told_ = false;
  std::map<node_id, known> all_;
  std::map<node_id, waiting> waits_;
  std::map<node_id, node_id> fresh_;
  std::map<node_id, std::int64_t> accused_;
  std::vector<told> expected_;
};

}  // namespace

// RT-1 to RT-7, in 1,000 drawn lives of a roster
BOOST_AUTO_TEST_CASE(a_roster_knows_what_plain_maps_know_whatever_it_hears, *boost::unit_test::label("explored")) {
  for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) drawn_roster(seed).run(60);
  }
}

BOOST_AUTO_TEST_SUITE_END()
