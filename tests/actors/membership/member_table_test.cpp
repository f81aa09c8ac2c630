// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/member_table.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "support/contains.hpp"

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
  BOOST_TEST(table.objection(node(2, "stage1")) == "");
  BOOST_TEST(contains(table.objection(node(0, "stage1")), "an id"));
  BOOST_TEST(contains(table.objection(node(1, "driver")), "can't join itself"));
  BOOST_TEST(contains(table.objection(node(2, "driver")), "the name 'driver' is taken"));
  BOOST_TEST(contains(table.objection(node(2, "a/b")), "letters, digits"));
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
  BOOST_TEST(table.objection(node(3, "stage1")) == "");
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

namespace {

/// Three nodes, each with a table, and the network between them: messages take a drawn time and may be lost, links are cut and
/// mended, connections break, nodes freeze and restart. All is drawn from one seed.
class small_world {
 public:
  static constexpr std::int64_t ms = 1'000'000;
  static constexpr std::size_t count = 3;

  explicit small_world(std::uint64_t seed) : random_(seed) {
    for (std::size_t i = 0; i < count; ++i) start(i);
  }

  /// Lets time pass. With `faults` things go wrong.
  void pass(std::int64_t ns, bool faults) {
    for (const auto end = now_ + ns; now_ < end; now_ += 5 * ms) {
      if (faults) go_wrong();
      deliver();
      for (std::size_t i = 0; i < count; ++i) beat(i);
    }
  }

  /// Mends all links and wakes all nodes.
  void heal() {
    cut_ = {};
    for (auto& each : hosts_) each.is_frozen = false;
    lossy_ = false;
  }

  bool is_up(std::size_t at, std::size_t who) const { return hosts_[at].table.find_up(hosts_[who].self.id) != nullptr; }
  bond between(std::size_t at, std::size_t who) const { return hosts_[at].table.between(hosts_[who].self.id); }
  std::size_t separations() const { return separations_; }
  std::size_t partings() const { return partings_; }

 private:
  struct host {
    member self;
    member_table table;
    std::int64_t beat_ns = 0;
    bool is_frozen = false;
    bool has_joined = false;                // a node dials another one until that has answered
    std::map<node_id, std::int64_t> dials;  // the deadlines
    std::map<node_id, std::uint16_t> ports;
    std::map<node_id, std::string> last;  // the last news of each node
  };
  struct message {
    enum class kind { hello, welcome, beat, seen, refused, lost } what;
    std::size_t from;
    std::size_t to;
    node_id from_id;
    node_id to_id;
    bond between;
    std::int64_t due_ns;
    std::uint64_t connection;
  };

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  std::uint64_t& connection(std::size_t a, std::size_t b) { return connections_[std::min(a, b) * count + std::max(a, b)]; }

  void start(std::size_t i) {
    auto& each = hosts_[i];
    each = host();
    each.self =
      node(100 * ++last_id_ + i + 1, std::string(1, static_cast<char>('a' + i)), static_cast<std::uint16_t>(4000 + i));
    each.table = member_table(each.self, {std::chrono::milliseconds(100), std::chrono::milliseconds(3000)});
    each.beat_ns = now_ + static_cast<std::int64_t>(below(100)) * ms;
    for (std::size_t other = 0; other < count; ++other)
      if (other != i && now_ != 0) break_connection(i, other);
  }

  void break_connection(std::size_t a, std::size_t b) {
    auto& current = connection(a, b);
    current = 0;
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}})
      if (!cut_[a * count + b])
        messages_.push_back({message::kind::lost, from, to, hosts_[from].self.id, hosts_[to].self.id, {}, now_, 0});
  }

  void go_wrong() {
    const auto a = below(count);
    const auto b = (a + 1 + below(count - 1)) % count;
    switch (below(400)) {
      case 0:
        cut_[a * count + b] = cut_[b * count + a] = true;
        break;
      case 1:
      case 2:
        cut_[a * count + b] = cut_[b * count + a] = false;
        break;
      case 3:
        break_connection(a, b);
        break;
      case 4:
        hosts_[a].is_frozen = true;
        break;
      case 5:
      case 6:
        hosts_[a].is_frozen = false;
        break;
      case 7:
        if (below(4) == 0) start(a);
        break;
      case 8:
        cut_[a * count + b] = true;  // one way only
        break;
      case 9:
        lossy_ = !lossy_;
        break;
    }
  }

  void send(message::kind what, std::size_t from, std::size_t to, node_id to_id, bond between, std::uint64_t on) {
    if (cut_[from * count + to] || (lossy_ && below(4) == 0)) return;
    const auto due = now_ + static_cast<std::int64_t>(below(30)) * ms;
    messages_.push_back({what, from, to, hosts_[from].self.id, to_id, between, due, on});
  }

  std::size_t host_of(const member& who) const { return who.port - 4000u; }

  void dial(std::size_t from, const member& who, bool again) {
    auto& me = hosts_[from];
    const auto to = host_of(who);
    if (to == from) return;
    if (again) me.dials[who.id] = now_ + 1000 * ms;
    if (cut_[from * count + to] || cut_[to * count + from] || hosts_[to].is_frozen) return;
    if (connection(from, to) == 0) connection(from, to) = ++last_connection_;
    const auto there = hosts_[to].self.id;
    const bool expected = there == who.id;
    send(message::kind::hello, from, to, there, again && expected ? me.table.between(there) : bond{}, connection(from, to));
  }

  /// A node that a dial was to reach, or another node at its address, has answered.
  void end_dials(std::size_t at, const member& who) {
    auto& me = hosts_[at];
    for (const auto& [id, deadline] : std::map(me.dials))
      if (known_address(me, id) == who.port) {
        me.dials.erase(id);
        using end = member_table::dial_end;
        act(at, me.table.dialled(id, id == who.id ? end::reached : end::another_listens, now_));
      }
  }

  static std::uint16_t known_address(const host& of, node_id id) {
    const auto* peer = of.table.find(id);
    return peer != nullptr ? peer->who.port : of.ports.at(id);
  }

  void act(std::size_t at, troupe::membership::member_steps steps) {
    auto& me = hosts_[at];
    for (const auto& news : steps.changes) {
      using kind = peer_change::kind;
      auto& last = me.last[news.who.id];
      const char* now = news.what == kind::gone ? "gone" : news.what == kind::unreachable ? "unreachable" : "up";
      const auto allowed = last.empty() || last == "gone" ? news.what == kind::up
                           : last == "up"                 ? news.what != kind::up && news.what != kind::up_again
                                                          : news.what == kind::up_again || news.what == kind::gone;
      BOOST_TEST_REQUIRE(allowed, "'" << now << "' after '" << last << "'");  // ME-1
      last = now;
      separations_ += news.what == kind::unreachable;
      partings_ += news.what == kind::gone;
    }
    for (const auto& [id, peer] : me.table.peers())
      if (!peer.is_connected && host_of(peer.who) != at && hosts_[host_of(peer.who)].self.id == id)
        cut_by(at, host_of(peer.who));
    for (const auto id : steps.beats) beat_to(at, id);
    for (const auto id : steps.greets) greet(at, id);
    for (const auto& who : steps.dials) {
      me.ports[who.id] = who.port;
      dial(at, who, true);
    }
  }

  void cut_by(std::size_t a, std::size_t b) {
    if (connection(a, b) != 0) break_connection(a, b);
  }

  void beat_to(std::size_t from, node_id id) {
    const auto* peer = hosts_[from].table.find(id);
    if (peer == nullptr) return;
    const auto to = host_of(peer->who);
    if (hosts_[to].self.id == id && connection(from, to) != 0)
      send(message::kind::beat, from, to, id, peer->between, connection(from, to));
  }

  void greet(std::size_t from, node_id id) {
    const auto* peer = hosts_[from].table.find(id);
    if (peer == nullptr) return;
    const auto to = host_of(peer->who);
    if (hosts_[to].self.id == id && connection(from, to) != 0)
      send(message::kind::hello, from, to, id, peer->between, connection(from, to));
  }

  void beat(std::size_t i) {
    auto& me = hosts_[i];
    if (me.is_frozen || now_ < me.beat_ns) return;
    me.beat_ns = now_ + 100 * ms;
    if (!me.has_joined) dial(i, hosts_[(i + 1) % count].self, false);
    for (const auto& [id, deadline] : std::map(me.dials))
      if (now_ >= deadline) {
        me.dials.erase(id);
        act(i, me.table.dialled(id, member_table::dial_end::not_reached, now_));
      }
    act(i, me.table.beat(now_, [](const known_peer&) { return false; }));
  }

  void deliver() {
    std::vector<message> due;
    std::erase_if(messages_, [&](const message& each) {
      if (each.due_ns > now_ || hosts_[each.to].is_frozen) return false;
      due.push_back(each);
      return true;
    });
    for (const auto& each : due) receive(each);
  }

  void receive(const message& got) {
    auto& me = hosts_[got.to];
    const auto from = got.from;
    if (got.to_id != me.self.id) return;
    if (got.what == message::kind::lost) return act(got.to, me.table.connection_lost(got.from_id, now_));
    if (got.connection != connection(from, got.to) || got.from_id != hosts_[from].self.id) return;
    const auto meet = [&](member_table::way how) {
      if (me.table.find(got.from_id) == nullptr)
        if (const auto* rival = me.table.rival(hosts_[from].self)) act(got.to, me.table.left(rival->who.id, "replaced", now_));
      act(got.to, me.table.met(hosts_[from].self, nullptr, got.between, how, now_));
      for (const auto& other : hosts_[from].table.members())
        if (me.table.should_meet(other.id)) dial(got.to, other, false);
    };
    switch (got.what) {
      case message::kind::hello:
        meet(member_table::way::hears);
        return send(message::kind::welcome, got.to, from, got.from_id, me.table.between(got.from_id), got.connection);
      case message::kind::welcome:
        me.has_joined = true;
        end_dials(got.to, hosts_[from].self);
        meet(member_table::way::answers);
        if (me.table.between(got.from_id) != got.between)
          send(message::kind::hello, got.to, from, got.from_id, me.table.between(got.from_id), got.connection);
        return;
      case message::kind::beat:
        act(got.to, me.table.heard(got.from_id, got.between, now_));
        if (const auto* peer = me.table.find(got.from_id))
          return send(message::kind::seen, got.to, from, got.from_id, peer->between, got.connection);
        return send(message::kind::refused, got.to, from, got.from_id, {}, got.connection);
      case message::kind::seen:
        return act(got.to, me.table.answered(got.from_id, got.between, now_));
      case message::kind::refused:
        return greet(got.to, got.from_id);
      case message::kind::lost:
        return;
    }
  }

  std::mt19937_64 random_;
  std::int64_t now_ = 0;
  std::array<host, count> hosts_;
  std::array<bool, count * count> cut_{};
  std::array<std::uint64_t, count * count> connections_{};
  std::uint64_t last_connection_ = 0;
  std::uint64_t last_id_ = 0;
  bool lossy_ = false;
  std::vector<message> messages_;
  std::size_t separations_ = 0;
  std::size_t partings_ = 0;
};

}  // namespace

// ME-5, ME-1, MT-1, MT-2
BOOST_AUTO_TEST_CASE(three_nodes_are_up_for_each_other_again_whatever_went_wrong) {
  std::size_t separations = 0;
  std::size_t partings = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    small_world world(seed);
    world.pass(20'000 * small_world::ms, true);
    world.heal();
    world.pass(70'000 * small_world::ms, false);
    for (std::size_t a = 0; a < small_world::count; ++a)
      for (std::size_t b = 0; b < small_world::count; ++b) {
        if (a == b) continue;
        BOOST_TEST_REQUIRE(world.is_up(a, b), "seed " << seed << ": " << b << " is not up for " << a);
        BOOST_TEST_REQUIRE((world.between(a, b) == world.between(b, a)), "seed " << seed << ": two bonds");
      }
    separations += world.separations();
    partings += world.partings();
  }
  BOOST_TEST(separations > 300u);
  BOOST_TEST(partings > 300u);
}
