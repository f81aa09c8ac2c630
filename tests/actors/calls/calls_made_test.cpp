// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/calls_made.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(calls_that_this_node_makes)

namespace {

using namespace troupe;
using core = calls::calls_made;
using number = core::number;

constexpr node_id peer{7};
constexpr object_id none;
constexpr object_id one{peer, 1};
constexpr object_id other{peer, 2};
const error broken(errc::function_failed, "broken");

std::string name_of(const core::effect& what) {
  constexpr const char* names[] = {"meet", "limit", "ship", "ask", "finish", "fail", "call_off", "forget"};
  return names[what.index()];
}
number call_of(const core::effect& what) {
  return std::visit([](const auto& each) { return each.call; }, what);
}

/// Names the effects: "ship 1, ask 1".
struct calls_of_node : core {
  std::string on(const event& what) {
    std::string text;
    for (const auto& each : core::on(what))
      text += (text.empty() ? "" : ", ") + name_of(each) + ' ' + std::to_string(call_of(each));
    return text;
  }
  std::string make(number call, object_id object = none, bool is_late = false, std::uint32_t depth = 0) {
    return on(made{call, peer, {}, object, depth, is_late});
  }
  std::string ship(number call, bool in_fragments = false) { return on(shipped{call, in_fragments}); }
  std::string arrive(number call) { return on(tensors_came{call}); }
  std::string answer(number call) { return on(answered{call}); }
  std::string fail(number call) { return on(failed{call, broken}); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(decisions, calls_of_node)

BOOST_AUTO_TEST_CASE(a_call_ends_once) {  // LC-4
  BOOST_TEST(make(1) == "ship 1");
  BOOST_TEST(ship(1) == "ask 1");
  BOOST_TEST(answer(1) == "finish 1, forget 1");
  BOOST_TEST(answer(1) + fail(1) + ship(1) + arrive(1) == "");
  BOOST_TEST(is_empty());
}

// LC-1
BOOST_AUTO_TEST_CASE(calls_on_one_object_wait_behind_a_late_one_and_no_others_do) {
  BOOST_TEST(make(1, one, true) == "limit 1");
  BOOST_TEST(make(2, one) == "limit 2");
  BOOST_TEST(make(3, one, true) == "limit 3");
  BOOST_TEST(make(4, other) == "ship 4");
  BOOST_TEST(make(5) == "ship 5");
  BOOST_TEST(arrive(3) == "");  // its tensors are ready before those of the first call
  BOOST_TEST(arrive(1) == "ship 1, ship 2, ship 3");
}

// LC-1
BOOST_AUTO_TEST_CASE(a_call_on_no_object_waits_for_its_own_tensors_alone) {
  BOOST_TEST(make(1, none, true) == "limit 1");
  BOOST_TEST(make(2, none, true) == "limit 2");
  BOOST_TEST(arrive(2) == "ship 2");
  BOOST_TEST(arrive(1) == "ship 1");
}

// LC-3: the tensors are there before the other node has been met.
BOOST_AUTO_TEST_CASE(a_call_whose_tensors_come_before_its_node_is_met_leaves_once) {
  for (const auto& [call, object] : {std::pair{1, none}, std::pair{2, one}}) {
    const auto text = " " + std::to_string(call);
    const auto which = static_cast<number>(call);
    BOOST_TEST(on(made{which, peer, {}, object, 0, true, false}) == "limit" + text + ", meet" + text);
    BOOST_TEST(arrive(which) == "");
    BOOST_TEST(on(met{which}) == "ship" + text);
    BOOST_TEST(arrive(which) + on(met{which}) == "");
  }
}

// LC-2
BOOST_AUTO_TEST_CASE(a_call_that_ended_holds_up_none) {
  make(1, one, true);
  make(2, one);
  make(3, one, true);
  BOOST_TEST(fail(1) == "fail 1, forget 1, ship 2");
  BOOST_TEST(fail(3) == "fail 3, forget 3");
  BOOST_TEST(make(4, one) == "ship 4");
  BOOST_TEST(ship(4) == "limit 4");
  BOOST_TEST(fail(2) == "fail 2, ask 4");
  BOOST_TEST(ship(2) == "call_off 2, forget 2");
}

// LC-1, OG-3: the tensors of the first call leave ahead, and take longer than those of the second.
BOOST_AUTO_TEST_CASE(calls_on_one_object_ask_in_the_order_in_which_they_were_made) {
  BOOST_TEST(make(1, one) + ", " + make(2, one) + ", " + make(3, one) == "ship 1, ship 2, ship 3");
  BOOST_TEST(ship(2) == "limit 2");
  BOOST_TEST(ship(3) == "limit 3");
  BOOST_TEST(fail(3) == "call_off 3, fail 3, forget 3");
  BOOST_TEST(ship(1) == "ask 1, ask 2");
}

BOOST_AUTO_TEST_CASE(later_calls_on_the_object_wait_until_the_one_in_fragments_has_ended) {  // OG-3
  make(1, one);
  BOOST_TEST(ship(1, true) == "ask 1");
  for (const number call : {2, 3, 4}) {
    make(call, one);
    BOOST_TEST(ship(call, call == 3) == "limit " + std::to_string(call));
  }
  make(5, other);
  BOOST_TEST(ship(5) == "ask 5");
  BOOST_TEST(answer(1) == "finish 1, forget 1, ask 2, ask 3, limit 4");
  BOOST_TEST(answer(2) == "finish 2, forget 2");
  BOOST_TEST(fail(3) == "fail 3, forget 3, ask 4");
}

BOOST_AUTO_TEST_CASE(calls_of_another_depth_do_not_wait_for_the_end_of_one_in_fragments) {  // LC-6
  make(1, one);
  ship(1, true);
  make(2, one, false, 1);
  BOOST_TEST(ship(2) == "ask 2");
}

BOOST_AUTO_TEST_CASE(calls_to_a_node_that_is_not_met_begin_in_order) {  // LC-5
  on(made{1, peer, {}, none, 0, false, false});
  BOOST_TEST(on(made{2, peer, {}, none, 0, false, true}) == "limit 2, meet 2");
  BOOST_TEST(on(made{3, node_id{8}, {}, none}) == "ship 3");
  BOOST_TEST(on(met{2}) == "ship 1, ship 2");
  BOOST_TEST(on(met{1}) == "");
  BOOST_TEST(make(4) == "ship 4");
  on(made{5, peer, {}, none, 0, false, false});
  BOOST_TEST(fail(5) == "fail 5, forget 5");
  BOOST_TEST(make(6) == "ship 6");
}

BOOST_AUTO_TEST_CASE(the_release_of_a_context_ends_its_calls_and_no_others) {  // LC-2
  const context_id context{peer, 3};
  on(made{1, peer, context, one, 0, true});
  on(made{2, peer, context, one});
  on(made{3, peer, {}, one});
  on(made{4, peer, {peer, 4}, none});
  BOOST_TEST(on(context_closed{context, broken}) == "fail 1, forget 1, fail 2, forget 2, ship 3");
  BOOST_TEST(on(context_closed{context, broken}) == "");
}

BOOST_AUTO_TEST_CASE(a_node_that_goes_down_ends_the_calls_to_it) {
  make(1, one);
  make(2, one);
  on(made{3, node_id{8}, {}, none});
  fail(2);
  BOOST_TEST(on(node_down{peer, broken}) == "fail 1, forget 1, forget 2");
  BOOST_TEST(ship(1) + ship(2) == "");
  BOOST_TEST(fail(3) + ship(3) == "fail 3call_off 3, forget 3");
  BOOST_TEST(is_empty());
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

/// One node and what is around it, which does what a seed says: calls on few objects, in few contexts, to few nodes.
class drawn_node {
 public:
  explicit drawn_node(std::uint64_t seed) : random_(seed) {}

  void run() {
    for (int steps = 30; steps > 0; --steps) {
      if (below(4) == 0 || !let_one_happen()) begin_or_break();
      check();
    }
    while (let_one_happen()) check();
    BOOST_TEST_REQUIRE(core_.is_empty());
    for (const auto& [which, call] : calls_) {
      require(call.ended && call.forgotten, which, "has not ended");
      require(call.called_off == (call.has_shipped && !call.asked), which, "tensors called off, or not");
    }
  }

 private:
  struct call {
    core::made facts;
    bool is_late, was_late;
    bool met = false, shipping = false, has_shipped = false, in_fragments = false, asked = false, limited = false;
    bool ended = false, called_off = false, forgotten = false;
  };
  enum class kind { met, came, shipped, answered, deadline };
  using open = std::pair<kind, number>;

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  static void require(bool is_so, number which, const char* what) {
    if (!is_so) BOOST_REQUIRE_MESSAGE(false, "call " << which << ": " << what);
  }

  void begin_or_break() {
    const node_id to{1 + below(2)};
    const context_id context{node_id{9}, below(3)};
    if (context && below(12) == 0) {
      act(core::context_closed{context, broken}, &context);
      for (const auto& [which, it] : calls_) require(it.ended || it.facts.context != context, which, "outlives its context");
      return;
    }
    if (below(16) == 0) {
      is_up_[to] = false;
      std::erase_if(open_, [&](const open& each) {
        return calls_.at(each.second).facts.to == to && (each.first == kind::shipped || each.first == kind::answered);
      });
      return act(core::node_down{to, broken});
    }
    const bool is_late = below(3) == 0;
    const core::made facts{++last_,
                           to,
                           context,
                           object_id{to, below(3)},
                           static_cast<std::uint32_t>(below(2)),
                           is_late,
                           is_up_.emplace(to, below(2) == 0).first->second};
    calls_[last_] = {facts, is_late, is_late};
    if (is_late) open_.emplace_back(kind::came, last_);
    act(facts);
  }

  bool let_one_happen() {
    if (open_.empty()) return false;
    const auto at = open_.begin() + static_cast<std::ptrdiff_t>(below(open_.size()));
    const auto [what, which] = *at;
    open_.erase(at);
    auto& it = calls_.at(which);
    const bool fails = below(8) == 0;
    switch (what) {
      case kind::met:
        if (fails) return act(core::failed{which, broken}), true;
        is_up_[it.facts.to] = true;
        return act(core::met{which}), true;
      case kind::came:
        if (fails) return act(core::failed{which, broken}), true;
        it.is_late = false;
        return act(core::tensors_came{which}), true;
      case kind::shipped:
        it.has_shipped = true;
        it.in_fragments = below(3) == 0;
        return act(core::shipped{which, it.in_fragments}), true;
      case kind::answered:
        return fails ? act(core::failed{which, broken}) : act(core::answered{which}), true;
      case kind::deadline:
        if (!it.ended && !it.asked && below(4) != 0) return open_.push_back({what, which}), true;
        if (!it.asked) act(core::failed{which, broken});
        return true;
    }
    return true;
  }

  /// `closed`: the context that is closed.
  void act(const core::event& what, const context_id* closed = nullptr) {
    for (const auto& each : core_.on(what)) {
      const auto which = call_of(each);
      require(calls_.contains(which) && !calls_.at(which).forgotten, which, "was forgotten");
      if (closed != nullptr && std::holds_alternative<core::fail>(each))
        require(calls_.at(which).facts.context == *closed, which, "ends with another context");
      std::visit([&](const auto& effect) { carry_out(which, calls_.at(which), effect); }, each);
    }
  }

  void carry_out(number which, call& it, const core::meet&) {
    const bool is_needed = !it.facts.is_up || std::ranges::any_of(open_, [&](const open& each) {
      return each.first == kind::met && each.second < which && calls_.at(each.second).facts.to == it.facts.to &&
             !calls_.at(each.second).ended;
    });
    require(!it.ended && !it.shipping && is_needed, which, "meets");
    open_.emplace_back(kind::met, which);
  }
  void carry_out(number which, call& it, const core::limit&) {
    require(!it.ended && !it.asked, which, "is limited");
    if (!std::exchange(it.limited, true)) open_.emplace_back(kind::deadline, which);
  }
  void carry_out(number which, call& it, const core::ship& what) {
    require(!it.ended && !it.is_late && !it.shipping, which, "ships");
    it.shipping = true;
    for (const auto& [each, earlier] : calls_)
      if (each < which && !earlier.ended && !earlier.shipping && earlier.facts.object == it.facts.object &&
          earlier.facts.to == it.facts.to)
        require(!it.facts.object && (earlier.was_late || it.was_late), which, "ships before an earlier one");  // LC-1, LC-5
    if (below(2) == 0) return open_.emplace_back(kind::shipped, which), void();
    it.has_shipped = true;
    it.in_fragments = below(3) == 0;
    act(core::shipped{what.call, it.in_fragments});
  }
  void carry_out(number which, call& it, const core::ask&) {
    require(!it.ended && it.has_shipped && !it.asked, which, "asks");  // LC-3
    it.asked = true;
    open_.emplace_back(kind::answered, which);
    for (const auto& [each, earlier] : calls_)
      if (each < which) require(!delays(earlier, it), which, "asks too early");
  }
  void carry_out(number which, call& it, const core::finish&) { require(it.asked && end(it), which, "is finished"); }
  void carry_out(number which, call& it, const core::fail&) { require(end(it), which, "fails"); }
  void carry_out(number which, call& it, const core::call_off&) {
    require(it.has_shipped && !it.asked && !std::exchange(it.called_off, true), which, "is called off");
  }
  void carry_out(number which, call& it, const core::forget&) {
    require(it.ended, which, "is forgotten");
    it.forgotten = true;
  }
  static bool end(call& it) { return !std::exchange(it.ended, true); }

  /// Whether the earlier call holds up the later one. The tensors of the later call have left. LC-1, LC-2, LC-6.
  static bool delays(const call& earlier, const call& it) {
    if (earlier.ended || !it.facts.object || earlier.facts.object != it.facts.object) return false;
    const bool same_depth = earlier.facts.depth == it.facts.depth;
    return earlier.asked ? same_depth && earlier.in_fragments : same_depth || !earlier.has_shipped;
  }

  /// No call waits without a reason, or without a deadline.
  void check() const {
    for (const auto& [which, it] : calls_) {
      if (it.ended || it.asked) continue;
      bool has_reason = std::find(open_.begin(), open_.end(), open{kind::met, which}) != open_.end() || it.is_late ||
                        (it.shipping && !it.has_shipped);
      for (const auto& [each, earlier] : calls_)
        if (each < which && !earlier.ended && earlier.facts.object == it.facts.object && it.facts.object)
          has_reason = has_reason || (it.has_shipped ? delays(earlier, it) : !earlier.shipping);
      require(has_reason, which, "waits for nothing");
      require(it.limited || (it.shipping && !it.has_shipped), which, "has no deadline");
    }
  }

  std::mt19937_64 random_;
  core core_;
  number last_ = 0;
  std::map<number, call> calls_;
  std::map<node_id, bool> is_up_;
  std::vector<open> open_;  // what may happen
};

}  // namespace

// LC-1 to LC-6, in 20,000 drawn lives of a node
BOOST_AUTO_TEST_CASE(calls_end_once_and_leave_in_order_whatever_happens, *boost::unit_test::label("explored")) {
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) drawn_node(seed).run();
  }
}

BOOST_AUTO_TEST_SUITE_END()
