// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/member_table.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <set>
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

// MT-8: a peer that is unreachable, and a member that this node was never connected to.
BOOST_AUTO_TEST_CASE(a_member_that_answers_a_dial_by_saying_that_it_stops_has_left) {
  for (const bool is_peer : {true, false}) {
    member_table table(node(1, "driver"));
    const auto stage = node(2, "stage", 5000);
    if (is_peer) {
      table.met(stage, nullptr, {}, member_table::way::hears, 0);
      table.connection_lost(stage.id, 0);
    } else {
      table.hear(node_id{9}, {{stage, 0, troupe::member_state::up}}, 0);
      table.take_strangers(0);
    }
    const auto steps = table.dialled(stage.id, member_table::dial_end::is_stopping, 0, "node 'stage' is stopping");
    BOOST_TEST(steps.obstacles.empty());
    BOOST_TEST((table.heard_of().about(stage.id).at(0).state == troupe::member_state::left));
    BOOST_TEST((table.holder(node(3, "stage", 5001)) == nullptr));
  }
}

// RT-3: the peer may have heard before that the member is up, and a digest does not show that it lacks the news.
BOOST_AUTO_TEST_CASE(a_peer_that_greets_before_the_news_of_an_end_are_passed_on_hears_them) {
  member_table table(node(1, "driver"));
  const auto peer = node(2, "stage");
  const auto member = node(3, "other");
  table.met(peer, nullptr, {}, member_table::way::hears, 0);
  table.hear(node_id{9}, {{member, 0, troupe::member_state::up}}, 0);
  table.pass_on();
  table.hear(node_id{9}, {{member, 0, troupe::member_state::left}}, 0);
  table.met(peer, nullptr, {}, member_table::way::answers, 0);
  const auto steps = table.pass_on();
  BOOST_TEST_REQUIRE(steps.tells.size() == 1u);
  BOOST_TEST((steps.tells[0].first == peer.id && steps.tells[0].second.at(0).who.id == member.id));
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

// An estimate is wrong by half a round trip at most. Numbers that no clock shows change nothing.
BOOST_AUTO_TEST_CASE(a_clock_is_estimated_whatever_the_round_trips, *boost::unit_test::label("explored")) {
  std::mt19937_64 random(1);
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  constexpr std::int64_t most = 1'000'000'000'000'000'000;
  for (int round = 0; round < 1'000; ++round) {
    clock_estimate clock;
    const auto ahead = round % 2 == 0 ? below(2 * most) - most : below(minute);
    std::int64_t now = below(minute);
    double allowed = 0;
    for (int beat = 0; beat < 40; ++beat) {
      now += interval;
      allowed *= 1.05;
      const auto before = clock.offset_ns();
      const bool was_known = clock.known();
      const auto round_trip = below(8) == 0 ? -below(100) : below(below(4) == 0 ? 100'000'000 : 1'000'000);
      const auto there = round_trip < 0 ? 0 : below(round_trip + 1);
      const bool is_wild = below(8) == 0;
      const auto wild = below(2) == 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
      const bool is_edge = !is_wild && below(8) == 0;  // the difference is as large as it may be, or larger by one
      const auto edge = now + round_trip / 2 + (below(2) == 0 ? 1 : -1) * (most + below(2));
      const auto answered = is_wild ? wild : is_edge ? edge : now + there + ahead;
      clock.add(now, answered, now + round_trip);
      const bool counts = !is_wild && round_trip >= 0 && (!was_known || static_cast<double>(round_trip) <= allowed) &&
                          std::abs(answered - now - round_trip / 2) <= most;
      if (counts) allowed = static_cast<double>(round_trip);
      const bool is_right = counts ? clock.known() && clock.offset_ns() == answered - now - round_trip / 2
                                   : clock.offset_ns() == before && clock.known() == was_known;
      BOOST_REQUIRE_MESSAGE(is_right, "round " << round << ", heartbeat " << beat);
      if (counts && !is_edge) BOOST_REQUIRE(std::abs(clock.offset_ns() - ahead) <= round_trip / 2 + 1);
    }
  }
}

namespace {

/// A table of a node, and beside it what the table should know of its peers and of the nodes that were its peers. Draws who speaks with the
/// node, who is silent, which connections end and how dials end. What others tell is a matter of the roster, which is asked here.
class drawn_table {
 public:
  explicit drawn_table(std::uint64_t seed)
      : random_(seed),
        shares_work_(seed % 3 != 0),
        are_loud_(seed % 20 == 0),
        core_(self_, {std::chrono::milliseconds(250), std::chrono::seconds(6)}) {}

  void run(int steps) {
    for (; steps > 0; --steps) {
      step();
      check();
    }
  }

 private:
  using kind = peer_change::kind;
  using end = member_table::dial_end;
  enum class state { unknown, up, unreachable, gone };
  enum class wait { given_up, awaited, left };  // of a node that is gone
  struct other {
    state is = state::unknown;
    bond between = {};
    bool is_connected = false, has_hung_up = false;
    wait gone_as = wait::given_up;
    std::int64_t since = 0;  // lost, or gone
    int missed = 0;
    bool has_answered = true;
    std::int64_t seen = 0;
    std::int64_t next_dial = 0, pause = 0;
    std::uint64_t period = 0;
    // of a stranger
    std::int64_t wanted_until = 0, next_try = 0;
    bool is_tried = false, has_obstacle = false;

    bool is_peer() const { return is == state::up || is == state::unreachable; }
    bool is_stranger() const { return is == state::unknown || (is == state::gone && gone_as == wait::given_up); }
  };
  struct told {
    node_id who;
    kind what;
    std::uint64_t period = 0;
    std::int64_t away_ns = 0;
    std::string reason = {};  // or what is in it
  };
  static constexpr std::int64_t ms = 1'000'000;
  static constexpr std::uint64_t nodes = 9;  // with this one: the others are all neighbours

  static void require(bool is_so, int line = __builtin_LINE()) {
    if (!is_so) BOOST_REQUIRE_MESSAGE(false, "the table differs, in line " << line);
  }
  std::uint64_t drawn(std::uint64_t limit) { return random_() % limit; }
  static member of(node_id id) {
    return node(id.value, "n" + std::to_string(id.value), static_cast<std::uint16_t>(4000 + id.value));
  }

  void step() {
    const node_id id{1 + (self_.id.value + drawn(nodes - 1)) % nodes};
    auto& it = all_[id];
    if (drawn(4) == 0) now_ += interval / 2;
    expected_.clear();
    beats_.clear();
    dials_.clear();
    switch (are_loud_ && drawn(60) != 0 ? 17 : drawn(18)) {
      case 0:
      case 1:
        return meet(id, it);
      case 2:
        return hear_beat(id, it);
      case 3:
      case 4:
        return take_answer(id, it);
      case 5:
        return lose_connection(id, it);
      case 6:
        return leave(id, it);
      case 7:
        return suspect(id, it);
      case 8:
      case 9:
        return end_dial();
      case 10:
        return hear_news();
      case 11:
        return pass_on();
      case 12:
        return want(id, it);
      case 13:
        return take_strangers();
      default:
        now_ +=
          !are_loud_ && dialling_.empty() && drawn(20) == 0 ? static_cast<std::int64_t>(drawn(40)) * 100 * interval : interval;
        return beat();
    }
  }

  bond draw_bond(const other& it) {
    auto result = it.between;
    if (drawn(6) == 0) ++result.separations;
    if (drawn(12) == 0) result = {result.partings + 1, static_cast<std::uint32_t>(drawn(2))};
    if (drawn(12) == 0 && result.partings > 0) --result.partings;
    if (drawn(12) == 0 && result.separations > 0) --result.separations;
    return result;
  }
  void meet(node_id id, other& it) {
    const auto theirs = draw_bond(it);
    const auto how = drawn(2) == 0 ? member_table::way::hears : member_table::way::answers;
    const auto steps = core_.met(of(id), nullptr, theirs, how, now_);
    const bool was_stranger = it.is_stranger();
    take_over(id, it, theirs);
    if (it.is_peer()) {
      it.is_connected = true;
      if (it.between == theirs && it.is == state::unreachable && how == member_table::way::answers) revive(id, it);
      if (it.is == state::unreachable) beats_.insert(id);
    } else if (it.between == theirs) {
      it.is = state::up;
      it.is_connected = true;
      it.has_hung_up = false;
      see(it);
      it.next_dial = it.pause = 0;
      it.period = ++last_period_;
      expected_.push_back({id, kind::up, it.period});
      beats_.insert(id);
    }
    // How an earlier dial ends is of no interest any more.
    if (was_stranger || (!expected_.empty() && expected_.back().what == kind::up)) dialling_.erase(id);
    it.wanted_until = 0;
    compare(steps);
    require(!it.has_obstacle);
    const bool contradicts = core_.heard_of().doubts(id);  // RT-2: it is told what it has to contradict
    require(steps.tells.size() == (contradicts ? 1u : 0u));
    if (contradicts) require(steps.tells[0].first == id && steps.tells[0].second.size() == 1);
  }
  void hear_beat(node_id id, other& it) {
    const auto theirs = draw_bond(it);
    const auto steps = core_.heard(id, theirs, now_);
    take_over(id, it, theirs);
    if (it.is == state::unreachable) beats_.insert(id);
    compare(steps);
  }
  void take_answer(node_id id, other& it) {
    const auto theirs = draw_bond(it);
    const auto steps = core_.answered(id, theirs, now_);
    take_over(id, it, theirs);
    if (it.is_peer() && it.between == theirs) {
      it.has_answered = true;
      it.seen = now_;
      if (it.is == state::unreachable && it.is_connected) revive(id, it);  // MT-1
    }
    compare(steps);
  }
  void lose_connection(node_id id, other& it) {
    auto heard = core_.heard_of();
    if (it.is == state::up) heard.accuse(id, now_);
    const auto steps = core_.connection_lost(id, now_);
    require_heard(heard);
    if (it.is_peer() && it.is_connected) {
      it.is_connected = false;
      it.has_hung_up = true;
      if (it.is == state::up) separate(id, it, "connection lost");
      it.next_dial = now_ + (self_.id < id ? 0 : interval);
      dial_if_due(id, it);
    }
    compare(steps);
  }
  void leave(node_id id, other& it) {
    if (drawn(3) != 0) return;
    const auto was_peer = it.is_peer();
    const auto steps = core_.left(id, "left", now_);
    if (was_peer) forget(id, it, wait::left, "left");
    compare(steps);
    if (!was_peer) return;
    require(*core_.gone(id) == "left");
    require(state_heard(id) == troupe::member_state::left);
  }
  void suspect(node_id id, other& it) {
    if (drawn(3) != 0) return;
    auto heard = core_.heard_of();
    if (it.is == state::up) heard.accuse(id, now_);
    const auto steps = core_.suspect(id, now_);
    require_heard(heard);
    if (it.is == state::up) separate(id, it, "did not answer");
    compare(steps);
  }
  /// One dial ends.
  void end_dial() {
    if (dialling_.empty()) return;
    const auto id = *std::next(dialling_.begin(), static_cast<std::ptrdiff_t>(drawn(dialling_.size())));
    dialling_.erase(id);
    auto& it = all_[id];
    const auto how = drawn(2) == 0 ? end::not_reached : static_cast<end>(drawn(5));
    const bool was_peer = it.is_peer();
    const bool was_stranger = it.is_stranger();
    const bool was_gone = it.is == state::gone;
    auto expected = core_.heard_of();
    const bool may_cross = how == end::not_reached && it.wanted_until > now_ && !it.is_tried;
    const bool is_over = it.is == state::unreachable && (how == end::nobody_listens || how == end::another_listens);
    const bool has_left = how == end::is_stopping && it.is != state::up;
    if (has_left)
      expected.end(id, troupe::member_state::left, "", now_);
    else if (is_over && it.has_hung_up)
      expected.end(id, troupe::member_state::gone, "", now_);
    else if (is_over || (how != end::reached && (was_stranger ? !may_cross : was_gone)))
      expected.accuse(id, now_);
    const auto steps = core_.dialled(id, how, now_, "why");
    if (it.is == state::unreachable && how != end::reached) {
      if (how == end::not_reached)
        it.next_dial = now_ + interval;
      else if (has_left)
        forget(id, it, wait::left, "why");
      else
        how == end::nobody_listens ? forget(id, it, wait::awaited, "has ended")
                                   : forget(id, it, wait::given_up, "another program");
    } else if (was_gone) {
      if (has_left) it.gone_as = wait::left;
      if (how == end::another_listens && it.gone_as == wait::awaited) it.gone_as = wait::given_up;
      if (how != end::reached) wait_longer(it);
    }
    if (was_stranger && it.wanted_until > now_) it.next_try = now_ + (may_cross && self_.id > id ? 2 : 1) * interval;
    if (was_stranger) it.is_tried = true;
    compare(steps);
    require_heard(expected);
    const auto* heard = core_.heard_of().find(id);
    if (was_stranger && how != end::reached && !may_cross && heard != nullptr) {
      require(it.has_obstacle && !core_.is_up(id));  // MT-5, MT-10
      require(contains(core_.obstacle_to("", id), "why") && contains(core_.obstacle_to(heard->name, {}), "why"));
    }
    if (was_peer && it.is == state::gone && it.has_hung_up) require(state_heard(id) >= troupe::member_state::gone);  // MT-8
  }
  /// Another node tells of a node, or this one is suspected elsewhere.
  void hear_news() {
    const node_id id{1 + (self_.id.value + drawn(nodes - 1)) % nodes};
    const auto about = core_.heard_of().about(id);
    const auto incarnation = about.empty() ? 0 : about[0].incarnation + static_cast<std::uint32_t>(drawn(2));
    const node_id from{1 + drawn(nodes)};  // before the next draw: a seed is one life with any compiler
    const auto steps = core_.hear(from, {{of(id), incarnation, static_cast<troupe::member_state>(drawn(4))}}, now_);
    compare(steps);
  }

  /// RT-3
  void pass_on() {
    auto heard = core_.heard_of();
    std::set<std::pair<node_id, node_id>> expected;
    for (const auto& each : heard.take_news())
      for (const auto& [id, peer] : core_.peers())
        if (peer.is_connected && (heard.is_neighbour(id) || (peer.is_up && heard.doubts(id))) && each.from != id &&
            each.news.who.id != id && (each.number > peer.last_news || each.news.state >= troupe::member_state::gone))
          expected.emplace(id, each.news.who.id);
    const auto steps = core_.pass_on();
    will_pass_on_ = false;
    std::set<std::pair<node_id, node_id>> told;
    for (const auto& [id, news] : steps.tells)
      for (const auto& each : news) require(told.emplace(id, each.who.id).second);
    require(told == expected);
  }
  /// MT-6
  void want(node_id id, other& it) {
    if (!it.is_peer() && !it.is_stranger()) return;
    const auto* heard = core_.heard_of().find(id);
    const auto until = now_ + static_cast<std::int64_t>(drawn(8)) * interval;
    if (heard != nullptr && it.is_stranger()) {
      if (it.wanted_until <= now_) it.is_tried = false;
      it.wanted_until = std::max(it.wanted_until, until);
      if (!dialling_.contains(id)) dials_.insert(id);
    }
    compare(drawn(2) == 0 ? core_.want(id, until, now_) : core_.want(of(id).name, until, now_));
  }
  void take_strangers() {
    std::set<node_id> expected;
    for (const auto id : core_.heard_of().neighbours())
      if (all_[id].is_stranger() && !dialling_.contains(id)) expected.insert(id);
    for (const auto& each : core_.take_strangers(now_))
      require(expected.erase(each.id) == 1 && dialling_.insert(each.id).second);
    require(expected.empty());
  }

  void beat() {
    ++beat_;
    auto heard = core_.heard_of();
    heard.beat(now_);
    std::set<node_id> shared;
    for (std::uint64_t id = 1; id <= nodes; ++id)
      if (drawn(4) == 0) shared.insert(node_id{id});
    std::set<node_id> loud;
    for (std::uint64_t id = 1; id <= nodes; ++id)
      if (are_loud_ || drawn(4) == 0) loud.insert(node_id{id});
    const auto hears = [&](const known_peer& peer) { return loud.contains(peer.who.id); };
    const auto shares = [&](node_id who) { return shared.contains(who); };
    const auto steps = shares_work_ ? core_.beat(now_, hears) : core_.beat(now_, hears, shares);
    std::vector<node_id> forgotten;
    std::size_t cuts = 0;
    std::set<node_id> doubted;
    const auto turns = heard.neighbours();
    for (auto& [id, it] : all_) {
      if (!it.is_peer()) continue;
      if (it.is == state::up && !shares_work_ && !heard.doubts(id) && !shared.contains(id)) {  // MT-4
        const auto position = std::ranges::find(turns, id) - turns.begin();
        const auto rounds = (std::ssize(turns) + 1) / 2;
        if (position == std::ssize(turns)) {
          see(it);
          continue;
        }
        if (it.has_answered && position % rounds != beat_ % rounds) continue;
      }
      it.missed = it.has_answered ? 0 : it.missed + 1;
      it.has_answered = false;
      if (it.is == state::up && it.missed >= 3 && (!loud.contains(id) || it.missed >= 240)) {
        separate(id, it, (it.missed >= 240 ? "no answer to a heartbeat for " : "no sign of life for ") + in_ms(now_ - it.seen));
        heard.accuse(id, now_);
      }
      const auto away = now_ - it.since;
      if (it.is == state::unreachable && (it.missed >= 3 || !it.is_connected)) heard.accuse(id, now_);
      if (it.is == state::unreachable && away >= 6'000 * ms) {
        forgotten.push_back(id);
        continue;
      }
      if (it.is == state::unreachable && it.is_connected && away >= 8 * interval) {
        it.is_connected = false;
        ++cuts;
      }
      if (it.is_connected) beats_.insert(id);
      if (it.is == state::up && it.is_connected && heard.doubts(id)) doubted.insert(id);
      if (!it.is_connected) dial_if_due(id, it);
    }
    for (const auto id : forgotten) forget(id, all_[id], wait::awaited, "unreachable for " + in_ms(now_ - all_[id].since));
    for (auto& [id, it] : all_) {
      if (it.is != state::gone || it.gone_as != wait::awaited) continue;
      if (now_ - it.since >= 3'600'000 * ms)
        it.gone_as = wait::given_up;
      else
        dial_if_due(id, it);  // MT-2
    }
    for (auto& [id, it] : all_)
      if (it.is_stranger() && it.wanted_until > now_ && it.next_try <= now_ && heard.find(id) != nullptr &&
          !dialling_.contains(id))
        dials_.insert(id);
    require(steps.cuts.size() == cuts);
    std::set<node_id> told;
    for (const auto& [id, news] : steps.tells) told.insert(id);
    require(told == doubted);
    compare(steps);
    require_heard(heard);
    check_greets(steps.greets);
  }
  /// Every 20th interval the next one of the neighbours that are up is greeted.
  void check_greets(const std::vector<node_id>& greeted) {
    std::vector<node_id> up;
    for (const auto id : core_.heard_of().neighbours())
      if (all_[id].is == state::up) up.push_back(id);
    if (beat_ % 20 != 0) return require(greeted.empty());
    require(greeted.size() == (up.empty() ? 0u : 1u));
    const auto after = std::ranges::upper_bound(up, last_greeted_);
    last_greeted_ = up.empty() ? node_id{} : after == up.end() ? up.front() : *after;
    if (!up.empty()) require(greeted[0] == last_greeted_);
  }

  void take_over(node_id id, other& it, const bond& theirs) {
    if (theirs <= it.between) return;
    if (it.is_peer() && theirs.partings > it.between.partings)
      forget(id, it, wait::awaited, "held this node for gone");
    else if (it.is == state::up)
      separate(id, it, "held this node for unreachable");
    else if (it.is == state::unknown)
      it.is = state::gone;
    it.between = theirs;
  }
  void see(other& it) {
    it.missed = 0;
    it.has_answered = true;
    it.seen = now_;
  }
  /// What the roster should say of all nodes.
  void require_heard(const troupe::membership::roster& expected) const {
    const auto same = [](const auto& a, const auto& b) {
      return a.who.id == b.who.id && a.incarnation == b.incarnation && a.state == b.state;
    };
    require(std::ranges::equal(core_.heard_of().all(), expected.all(), same));
  }
  static std::string in_ms(std::int64_t ns) { return std::to_string(ns / ms) + " ms"; }
  void separate(node_id id, other& it, const std::string& why) {
    it.is = state::unreachable;
    it.since = now_;
    ++it.between.separations;
    expected_.push_back({id, kind::unreachable, it.period, 0, why});
  }
  void revive(node_id id, other& it) {
    it.is = state::up;
    it.has_hung_up = false;
    see(it);
    it.period = ++last_period_;
    expected_.push_back({id, kind::up_again, it.period, now_ - it.since});
  }
  void forget(node_id id, other& it, wait as, const std::string& why) {
    it.is = state::gone;
    it.between = {it.between.partings + 1, 0};
    it.gone_as = as;
    expected_.push_back({id, kind::gone, it.period, 0, why});
    it.since = now_;
    it.pause = 1'000 * ms;
    it.next_dial = now_ + it.pause;
  }
  void wait_longer(other& it) {
    it.pause = std::clamp(2 * it.pause, 1'000 * ms, 30'000 * ms);
    it.next_dial = now_ + it.pause;
  }
  void dial_if_due(node_id id, other& it) {
    if (now_ >= it.next_dial && !dialling_.contains(id)) dials_.insert(id);
  }

  void compare(const troupe::membership::member_steps& steps) {
    std::vector<told> changes;
    for (const auto& each : steps.changes)
      if (each.what < kind::known) changes.push_back({each.who.id, each.what, each.period, each.away_ns, each.reason});
    std::ranges::stable_sort(changes, {}, &told::who);
    std::ranges::stable_sort(expected_, {}, &told::who);
    require(std::ranges::equal(changes, expected_, [](const told& each, const told& wanted) {
      return each.who == wanted.who && each.what == wanted.what && each.period == wanted.period &&
             each.away_ns == wanted.away_ns && contains(each.reason, wanted.reason);
    }));
    for (const auto& each : steps.changes)
      if (each.what >= kind::known) check_heard(each);
    require(std::set(steps.beats.begin(), steps.beats.end()) == beats_);
    std::set<node_id> dials;
    for (const auto& each : steps.dials) {
      require(!dialling_.contains(each.id) && dials.insert(each.id).second);  // one dial at a time
      const auto& it = all_[each.id];
      require(!(it.is_peer() && it.is_connected));
      const bool may_meet = it.is_stranger() && it.wanted_until <= now_ && core_.heard_of().is_neighbour(each.id);  // MT-5
      require(dials_.contains(each.id) || may_meet);
    }
    for (const auto id : dials_) require(dials.contains(id));
    dialling_.insert(dials.begin(), dials.end());
    for (const auto& each : steps.obstacles) {  // MT-10
      auto& has = all_[each.who.id].has_obstacle;
      require(std::exchange(has, !each.why.empty()) == each.why.empty());
    }
    if (steps.passes_on) require(!std::exchange(will_pass_on_, true));
    require(!core_.heard_of().has_news() || will_pass_on_);
  }
  void check_heard(const peer_change& each) {  // MT-7
    const auto& it = all_[each.who.id];
    require(it.is_stranger());
    auto& last = heard_[each.who.id];
    const auto now = each.what == kind::known ? 'k' : each.is_gone ? 'g' : 'l';
    require(now == 'k' ? last != 'k' : now == 'g' ? last == 'k' || last == 'l' : last == 'k');
    last = now;
  }

  troupe::member_state state_heard(node_id id) const { return core_.heard_of().about(id).at(0).state; }

  void check() {
    const auto members = core_.members();
    const auto is_up = [this](const auto& each) { return core_.is_up(each.first); };
    require(std::ssize(members) == std::ranges::count_if(all_, is_up));
    for (const auto& each : members) require(core_.is_up(each.id));
    for (auto& [id, it] : all_) {
      require(core_.between(id) == it.between);
      require((core_.find(id) != nullptr) == it.is_peer());
      require((core_.find_up(id) != nullptr) == (it.is == state::up));
      require((core_.gone(id) != nullptr) == (it.is == state::gone));
      const auto* peer = core_.find(id);
      if (peer != nullptr) {
        require(peer->is_connected == it.is_connected && peer->period == it.period);
        heard_[id] = ' ';
      }
      require((core_.find_up(of(id).name) != nullptr) == (it.is == state::up));
      if (it.is_peer()) require(core_.is_up(id) == (it.is == state::up));
      if (it.is == state::gone && !it.is_stranger()) require(!core_.is_up(id));
    }
  }

  const member self_ = of(node_id{5});
  std::mt19937_64 random_;
  bool shares_work_;  // with every peer
  bool are_loud_;     // other bytes come from each peer, and few answers
  member_table core_;
  std::int64_t now_ = minute;
  std::int64_t beat_ = 0;
  std::uint64_t last_period_ = 0;
  node_id last_greeted_;
  bool will_pass_on_ = false;
  std::map<node_id, other> all_;
  std::map<node_id, char> heard_;  // the last news of a node that is no peer
  std::set<node_id> dialling_;
  std::vector<told> expected_;
  std::set<node_id> beats_, dials_;
};

}  // namespace

// MT-1, MT-2, MT-4, MT-7, MT-8, in 600 drawn lives of a table
BOOST_AUTO_TEST_CASE(peers_change_their_states_as_the_table_says_whatever_happens, *boost::unit_test::label("explored")) {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) drawn_table(seed).run(seed % 20 == 0 ? 1'000 : 200);
  }
}
