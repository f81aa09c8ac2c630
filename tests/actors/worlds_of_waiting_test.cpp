// SPDX-License-Identifier: BSD-3-Clause
// Searches random worlds of nodes that call each other, answer and send gradients for a circle of waiting.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <troupe/actors/calls/answers_under_way.hpp>
#include <troupe/actors/contracts/send_credits.hpp>

BOOST_AUTO_TEST_SUITE(worlds_of_waiting)

namespace {

using troupe::node_id;
using troupe::calls::answers_under_way;
using troupe::contracts::credit_accounts;

/// What is wrong in a world. The search has to find the circle that each mistake makes.
enum class mistake { none, depths_share_an_account, answers_are_taken_when_used, gradients_are_taken_when_used };

constexpr std::uint64_t limit = 100;
constexpr std::size_t most_begun = 3;  // see call_pool

/// Calls between nodes. Each call makes calls of its own and sends gradients, one after another, to random nodes. It ends when all its
/// calls have ended, and its answer then travels to the caller. A random one of the things that can happen next happens.
class world {
 public:
  world(unsigned seed, std::size_t nodes, std::size_t depths, mistake wrong) : random_(seed), depths_(depths), wrong_(wrong) {
    nodes_.resize(nodes);
    for (std::size_t i = 0; i < 30; ++i) add(random_() % nodes, 0, std::nullopt);
  }

  /// False if something is left and nothing can go on.
  bool run() {
    for (;;) {
      std::vector<std::size_t> calls;
      for (std::size_t i = 0; i < calls_.size(); ++i)
        if (can_go_on(i)) calls.push_back(i);
      std::vector<std::size_t> messages;
      for (std::size_t i = 0; i < messages_.size(); ++i)
        if (can_be_taken(messages_[i])) messages.push_back(i);
      if (calls.empty() && messages.empty()) return open_ == 0 && messages_.empty();
      const auto which = random_() % (calls.size() + messages.size());
      which < calls.size() ? go_on(calls[which]) : take(messages[which - calls.size()]);
      look_at_bounds();
    }
  }
  bool all_given_back() const {
    for (std::size_t at = 0; at < nodes_.size(); ++at) {
      if (!nodes_[at].calls.empty() || !nodes_[at].gradients.empty()) return false;
      for (std::size_t to = 0; to < nodes_.size(); ++to)
        if (nodes_[at].answers.bytes(id(to)) >= nodes_[at].answers.step()) return false;
    }
    return true;
  }
  /// The most that was under way to a node at once, of more than one call, gradient or answer.
  std::uint64_t most_calls = 0;
  std::uint64_t most_gradients = 0;
  std::uint64_t most_answers = 0;

 private:
  struct node {
    credit_accounts calls{limit};
    credit_accounts gradients{limit};
    answers_under_way answers{limit};
    std::map<std::size_t, std::size_t> begun;  // calls that run, by depth
  };
  enum class state { waits_to_leave, waits_to_start, runs, waits_with_gradients, answered, ended };
  struct call {
    std::size_t from;
    std::size_t to;
    std::size_t depth;
    std::uint64_t bytes;
    std::optional<std::size_t> parent;
    std::size_t to_make;
    std::size_t to_send;
    std::size_t open = 0;  // calls that it has made and that have not ended
    state now = state::waits_to_leave;
    credit_accounts::ticket ticket = 0;
    std::size_t gradients_to = 0;
    std::uint64_t gradient_bytes = 0;
  };
  struct message {
    enum class kind { answer, question, gradients } what;
    std::size_t from;
    std::size_t to;
    std::uint64_t bytes;
    std::size_t of;  // the call that it belongs to
  };

  static node_id id(std::size_t number) { return {number + 1}; }
  std::size_t another(std::size_t than) { return (than + 1 + random_() % (nodes_.size() - 1)) % nodes_.size(); }
  credit_accounts::account account_of(const call& which) const {
    return {id(which.to), wrong_ == mistake::depths_share_an_account ? 0 : which.depth};
  }

  void add(std::size_t from, std::size_t depth, std::optional<std::size_t> parent) {
    call made{from, another(from), depth, 1 + random_() % 120, parent, depth + 1 < depths_ ? random_() % 3 : 0, random_() % 3};
    ++open_;
    if (nodes_[from].calls.take(account_of(made), made.bytes))
      made.now = state::waits_to_start;
    else
      made.ticket = nodes_[from].calls.wait(account_of(made), made.bytes);
    calls_.push_back(made);
  }

  /// What waits for its turn gets it here.
  bool can_go_on(std::size_t which) {
    auto& it = calls_[which];
    if (it.now == state::waits_to_leave && nodes_[it.from].calls.take_in_turn(account_of(it), it.ticket))
      it.now = state::waits_to_start;
    if (it.now == state::waits_to_start)
      return nodes_[it.to].answers.has_credit(id(it.from)) && nodes_[it.to].begun[it.depth] < most_begun;
    if (it.now == state::waits_with_gradients && nodes_[it.to].gradients.take_in_turn({id(it.gradients_to), 0}, it.ticket))
      send_gradients(which);
    return it.now == state::runs && (it.to_make > 0 || it.to_send > 0 || it.open == 0);
  }

  void go_on(std::size_t which) {
    auto& it = calls_[which];
    if (it.now == state::waits_to_start) {
      it.now = state::runs;
      ++nodes_[it.to].begun[it.depth];
    } else if (it.to_make > 0 && (it.to_send == 0 || random_() % 2 == 0)) {
      --it.to_make;
      ++it.open;
      add(it.to, it.depth + 1, which);
    } else if (it.to_send > 0) {
      --it.to_send;
      it.gradients_to = another(it.to);
      it.gradient_bytes = 1 + random_() % 120;
      const credit_accounts::account account{id(it.gradients_to), 0};
      if (nodes_[it.to].gradients.take(account, it.gradient_bytes)) return send_gradients(which);
      it.now = state::waits_with_gradients;
      it.ticket = nodes_[it.to].gradients.wait(account, it.gradient_bytes);
    } else {
      it.now = state::answered;
      --nodes_[it.to].begun[it.depth];
      const auto bytes = 1 + random_() % 120;
      nodes_[it.to].answers.add(id(it.from), bytes);
      messages_.push_back({message::kind::answer, it.to, it.from, bytes, which});
    }
  }

  void send_gradients(std::size_t which) {
    auto& it = calls_[which];
    it.now = state::runs;
    messages_.push_back({message::kind::gradients, it.to, it.gradients_to, it.gradient_bytes, which});
  }

  bool can_be_taken(const message& what) const {
    if (what.what == message::kind::gradients && wrong_ == mistake::gradients_are_taken_when_used)
      return std::none_of(calls_.begin(), calls_.end(),
                          [&](const call& each) { return each.to == what.to && each.now == state::waits_with_gradients; });
    if (what.what != message::kind::question || wrong_ != mistake::answers_are_taken_when_used) return true;
    const auto parent = calls_[what.of].parent;
    return !parent || calls_[*parent].now == state::ended;
  }

  void take(std::size_t which) {
    const auto what = messages_[which];
    messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(which));
    auto& sender = nodes_[what.from];
    switch (what.what) {
      case message::kind::gradients:
        sender.gradients.give_back({id(what.to), 0}, what.bytes);
        break;
      case message::kind::question:
        sender.answers.taken(id(what.to), what.bytes);
        break;
      case message::kind::answer:
        if (const auto asked = sender.answers.left(id(what.to), what.bytes))
          messages_.push_back({message::kind::question, what.from, what.to, *asked, what.of});
        end(calls_[what.of]);
    }
  }

  void end(call& which) {
    nodes_[which.from].calls.give_back(account_of(which), which.bytes);
    which.now = state::ended;
    --open_;
    if (which.parent) --calls_[*which.parent].open;
  }

  void look_at_bounds() {
    for (auto& [bytes, most] : sums()) *most = std::max(*most, bytes);
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t*>> sums() {
    std::vector<std::pair<std::uint64_t, std::uint64_t*>> result;
    std::map<std::pair<std::size_t, credit_accounts::account>, int> calls;
    for (const auto& each : calls_)
      if (each.now != state::ended && each.now != state::waits_to_leave) ++calls[{each.from, account_of(each)}];
    for (const auto& [key, count] : calls)
      if (count > 1) result.push_back({nodes_[key.first].calls.under_way(key.second), &most_calls});
    std::map<std::pair<std::size_t, std::size_t>, int> gradients;
    for (const auto& each : messages_)
      if (each.what == message::kind::gradients) ++gradients[{each.from, each.to}];
    for (const auto& [key, count] : gradients)
      if (count > 1) result.push_back({nodes_[key.first].gradients.under_way({id(key.second), 0}), &most_gradients});
    for (const auto& from : nodes_)
      for (std::size_t to = 0; to < nodes_.size(); ++to) result.push_back({from.answers.bytes(id(to)), &most_answers});
    return result;
  }

  std::mt19937 random_;
  std::size_t depths_;
  mistake wrong_;
  std::vector<node> nodes_;
  std::vector<call> calls_;
  std::vector<message> messages_;  // under way
  std::size_t open_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(calls_answers_and_gradients_between_nodes_always_go_on) {  // BA-1, BA-3, AU-1, GW-14
  for (unsigned seed = 0; seed < 300; ++seed) {
    const std::size_t depths = 2 + seed % 4;
    world some(seed, 2 + seed % 3, depths, mistake::none);
    BOOST_REQUIRE(some.run());
    BOOST_REQUIRE(some.all_given_back());
    BOOST_REQUIRE(some.most_calls <= limit);
    BOOST_REQUIRE(some.most_gradients <= limit);
    BOOST_REQUIRE(some.most_answers < limit + 120 * most_begun * depths);  // the answers of the calls that ran already
  }
}

BOOST_AUTO_TEST_CASE(the_search_finds_the_circle_that_each_mistake_makes) {
  for (const auto wrong :
       {mistake::depths_share_an_account, mistake::answers_are_taken_when_used, mistake::gradients_are_taken_when_used}) {
    int circles = 0;
    for (unsigned seed = 0; seed < 300; ++seed) circles += world(seed, 2, 4, wrong).run() ? 0 : 1;
    BOOST_TEST(circles > 0, "mistake " << static_cast<int>(wrong));
    BOOST_TEST_MESSAGE(circles << " circles of 300");
  }
}

BOOST_AUTO_TEST_SUITE_END()
