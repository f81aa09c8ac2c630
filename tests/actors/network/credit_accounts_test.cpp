// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/credit_accounts.hpp>

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace {

using troupe::node_id;
using troupe::network::credit_accounts;

constexpr credit_accounts::account other{node_id{2}, 0};

/// Calls between nodes that call each other. Each call makes calls of its own, one after another, to random nodes; it ends when all
/// of them have ended. A random one of the things that can happen next happens.
class world {
 public:
  /// `depths`: how deep calls are nested. `counts_depth`: false is a mistake that the test has to find.
  world(unsigned seed, std::size_t nodes, std::size_t depths, bool counts_depth)
      : random_(seed), depths_(depths), counts_depth_(counts_depth) {
    for (std::size_t i = 0; i < nodes; ++i) credits_.emplace_back(100);
    for (std::size_t i = 0; i < 30; ++i) add(random_() % nodes, 0, std::nullopt);
  }

  /// False if calls are left and none of them can go on.
  bool run() {
    for (;;) {
      std::vector<std::size_t> ready;
      for (std::size_t i = 0; i < calls_.size(); ++i)
        if (can_go_on(i)) ready.push_back(i);
      if (ready.empty()) return open_ == 0;
      go_on(ready[random_() % ready.size()]);
    }
  }
  bool all_given_back() const {
    for (const auto& each : credits_)
      if (!each.empty()) return false;
    return true;
  }
  std::uint64_t most_under_way = 0;

 private:
  enum class state { waits, runs, ended };
  struct call {
    std::size_t from;
    std::size_t to;
    std::size_t depth;
    std::uint64_t bytes;
    std::optional<std::size_t> parent;
    std::size_t to_make;
    std::size_t open = 0;  // calls that it has made and that have not ended
    state now = state::waits;
    std::optional<credit_accounts::ticket> ticket = std::nullopt;
  };

  credit_accounts::account account_of(const call& which) const {
    return {node_id{which.to + 1}, counts_depth_ ? which.depth : 0};
  }

  void add(std::size_t from, std::size_t depth, std::optional<std::size_t> parent) {
    const auto to = (from + 1 + random_() % (credits_.size() - 1)) % credits_.size();
    call made{from, to, depth, 1 + random_() % 120, parent, depth + 1 < depths_ ? random_() % 3 : 0};
    ++open_;
    if (credits_[from].take(account_of(made), made.bytes))
      made.now = state::runs;
    else
      made.ticket = credits_[from].wait(account_of(made), made.bytes);
    calls_.push_back(made);
  }

  /// A waiting call can go on if its turn has come; that is tried in go_on().
  bool can_go_on(std::size_t which) {
    auto& it = calls_[which];
    if (it.now == state::waits && credits_[it.from].take_in_turn(account_of(it), *it.ticket)) it.now = state::runs;
    return it.now == state::runs && (it.to_make > 0 || it.open == 0);
  }

  void go_on(std::size_t which) {
    if (calls_[which].to_make > 0) {
      --calls_[which].to_make;
      ++calls_[which].open;
      add(calls_[which].to, calls_[which].depth + 1, which);
      return;
    }
    auto& it = calls_[which];
    const auto under_way = credits_[it.from].under_way(account_of(it));
    if (under_way > it.bytes) most_under_way = std::max(most_under_way, under_way);
    credits_[it.from].give_back(account_of(it), it.bytes);
    it.now = state::ended;
    --open_;
    if (it.parent) --calls_[*it.parent].open;
  }

  std::mt19937 random_;
  std::size_t depths_;
  bool counts_depth_;
  std::vector<credit_accounts> credits_;
  std::vector<call> calls_;
  std::size_t open_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(accounts_of_credit)

BOOST_AUTO_TEST_CASE(bytes_up_to_the_limit_are_under_way_or_one_call) {  // BA-1
  credit_accounts all(100);
  BOOST_TEST(all.take(other, 60));
  BOOST_TEST(!all.take(other, 41));
  BOOST_TEST(all.take(other, 40));
  all.give_back(other, 60);
  all.give_back(other, 40);
  BOOST_TEST(all.empty());
  BOOST_TEST(all.take(other, 1'000));
  BOOST_TEST(!all.take(other, 1));
  BOOST_TEST(all.take({node_id{3}, 0}, 1));  // of another node
  BOOST_TEST(all.take({node_id{2}, 1}, 1));  // of another depth
}

BOOST_AUTO_TEST_CASE(calls_leave_in_the_order_in_which_they_asked) {  // BA-2
  credit_accounts all(100);
  BOOST_TEST(all.take(other, 90));
  const auto first = all.wait(other, 50);
  const auto second = all.wait(other, 10);
  BOOST_TEST(!all.take(other, 10));  // would fit, but others ask for longer
  BOOST_TEST(!all.take_in_turn(other, second));
  BOOST_TEST(!all.take_in_turn(other, first));
  BOOST_TEST(all.give_back(other, 90));
  BOOST_TEST(!all.take_in_turn(other, second));
  BOOST_TEST(all.take_in_turn(other, first));
  BOOST_TEST(all.take_in_turn(other, second));
  BOOST_TEST(all.under_way(other) == 60U);
}

BOOST_AUTO_TEST_CASE(who_gives_up_is_in_nobodys_way) {
  credit_accounts all(100);
  BOOST_TEST(all.take(other, 100));
  const auto first = all.wait(other, 50);
  const auto second = all.wait(other, 10);
  all.give_up(other, first);
  all.give_back(other, 100);
  BOOST_TEST(all.take_in_turn(other, second));
  all.give_back(other, 10);
  BOOST_TEST(all.empty());
}

BOOST_AUTO_TEST_CASE(nested_calls_between_nodes_always_go_on) {  // BA-1, BA-3
  for (unsigned seed = 0; seed < 300; ++seed) {
    world some(seed, 2 + seed % 3, 2 + seed % 4, true);
    BOOST_REQUIRE(some.run());
    BOOST_REQUIRE(some.all_given_back());
    BOOST_REQUIRE(some.most_under_way <= 100U);
  }
}

BOOST_AUTO_TEST_CASE(the_search_finds_the_circle_that_one_account_a_node_would_make) {
  int circles = 0;
  for (unsigned seed = 0; seed < 300; ++seed) circles += world(seed, 2, 4, false).run() ? 0 : 1;
  BOOST_TEST(circles > 0);
}

BOOST_AUTO_TEST_SUITE_END()
