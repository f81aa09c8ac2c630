// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/calls_taken.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "support/growth_of_time.hpp"

BOOST_AUTO_TEST_SUITE(calls_that_this_node_takes)

namespace {

using namespace troupe;
using core = calls::calls_taken;
using number = core::number;

constexpr node_id one{1};
constexpr node_id two{2};
constexpr context_id of_one{one, 7};
constexpr context_id of_two{two, 7};
const error broken(errc::function_failed, "broken");

/// Names the effects: "limit 1, start 1", "start 2 in series".
struct calls_of_node : core {
  explicit calls_of_node(limits given = {}) : core(given) {}

  std::string on(const event& what) {
    constexpr const char* names[] = {"refuse_excess_bytes", "limit",    "go_on", "start", "refuse", "let_go",
                                     "tick_later",          "ask_taken"};
    std::string text;
    for (const auto& each : core::on(what)) {
      text += (text.empty() ? "" : ", ") + std::string(names[each.index()]);
      std::visit([&](const auto& effect) { text += number_of(effect); }, each);
    }
    return text;
  }
  std::string come(number call, node_id caller = one, context_id context = {}, std::uint64_t bytes = 0) {
    return on(came{call, caller, context, 0, bytes});
  }
  std::string run(number call) { return on(ready{{call}}); }
  std::string run_short(number call) { return on(ready{{call}, true}); }
  std::string free(worker who = 1) { return on(is_free{who}); }

 private:
  template <class Effect>
  static std::string number_of(const Effect& effect) {
    if constexpr (requires { effect.joins_series; })
      return " " + std::to_string(effect.call) + (effect.joins_series ? " in series" : "");
    else if constexpr (requires { effect.call; })
      return " " + std::to_string(effect.call);
    else
      return "";
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(decisions, calls_of_node)

BOOST_AUTO_TEST_CASE(a_call_ends_once) {  // HW-4
  BOOST_TEST(come(1) == "");
  BOOST_TEST(on(held{1}) == "limit 1");
  BOOST_TEST(on(wait_over{1}) == "go_on 1");
  BOOST_TEST(on(wait_over{1}) == "");
  BOOST_TEST(run(1) == "start 1");
  BOOST_TEST(run(1) + on(held{1}) + on(refused{1, broken}) + on(dropped{1}) == "");  // HW-3
  BOOST_TEST(!is_empty());
  BOOST_TEST(on(answer_left{1}) == "");
  BOOST_TEST(on(answer_left{1}) == "");
  BOOST_TEST(is_empty());
}

BOOST_AUTO_TEST_CASE(a_call_that_waits_for_a_worker_starts_when_one_is_free) {
  come(1);
  come(2);
  BOOST_TEST(run(1) == "start 1");
  BOOST_TEST(run(2) == "limit 2");
  BOOST_TEST(waiting() == 1u);
  BOOST_TEST(free() == "start 2");
  BOOST_TEST(waiting() == 0u);
  BOOST_TEST(free() == "tick_later");
  BOOST_TEST(on(tick{}) == "tick_later");
  BOOST_TEST(on(tick{}) == "let_go");
}

BOOST_AUTO_TEST_CASE(a_call_that_is_refused_never_starts) {  // HW-3, PW-4
  for (const number call : {1, 2, 3, 4}) {
    come(call);
    run(call);
  }
  BOOST_TEST(on(refused{3, broken}) == "refuse 3");
  BOOST_TEST(on(refused{3, broken}) == "");
  BOOST_TEST(free() == "start 2");
  BOOST_TEST(free() == "start 4");
}

BOOST_AUTO_TEST_CASE(where_no_worker_can_be_made_the_call_fails_and_others_start) {
  for (const number call : {1, 2}) {
    come(call);
    run(call);
  }
  BOOST_TEST(on(no_worker{1, broken}) == "refuse 1, start 2");
}

BOOST_AUTO_TEST_CASE(short_calls_run_in_a_series_that_takes_one_worker_slot) {  // HW-5, PW-6
  for (const number call : {1, 2, 3, 4}) come(call);
  BOOST_TEST(run(1) == "start 1");
  BOOST_TEST(on(begins_series{1, 9}) == "");
  BOOST_TEST(run_short(2) == "start 2 in series");
  BOOST_TEST(run(3) == "limit 3");
  BOOST_TEST(run_short(4) == "limit 4");  // behind the call 3, which is not short
  BOOST_TEST(free(9) == "");
  BOOST_TEST(has_series());
  BOOST_TEST(free(9) == "start 3");
  BOOST_TEST(!has_series());
}

BOOST_AUTO_TEST_CASE(no_call_joins_a_series_that_a_call_has_left) {  // HW-5
  for (const number call : {1, 2, 3}) come(call);
  run(1);
  on(begins_series{1, 9});
  BOOST_TEST(run_short(2) == "start 2 in series");
  BOOST_TEST(on(leaves_series{{2}}) == "limit 2");
  BOOST_TEST(on(leaves_series{{2}}) == "");
  BOOST_TEST(run_short(3) == "limit 3");
  BOOST_TEST(free(9) == "start 2");
  BOOST_TEST(on(begins_series{2, 9}) == "start 3 in series");
  BOOST_TEST(on(leaves_series{{3}}) == "limit 3");
  BOOST_TEST(on(leaves_series{{2}}) == "start 3, limit 2");  // the first call may leave too
  BOOST_TEST(!has_series());
}

BOOST_AUTO_TEST_CASE(a_series_is_not_long_and_has_no_large_answers) {  // HW-5
  for (number call = 1; call <= most_in_series + 2; ++call) come(call);
  run(1);
  on(begins_series{1, 9});
  for (number call = 2; call <= most_in_series; ++call)
    BOOST_TEST(run_short(call) == "start " + std::to_string(call) + " in series");
  constexpr number next = most_in_series + 1;
  BOOST_TEST(run_short(next) == "limit " + std::to_string(next));
  on(answered{1, largest_in_series + 1});
  BOOST_TEST(free(9) == "");
  on(answered{2, largest_in_series});
  BOOST_TEST(free(9) == "start " + std::to_string(next) + " in series");
}

BOOST_AUTO_TEST_CASE(calls_are_refused_by_their_context_and_by_their_caller) {  // HW-2, HW-3
  for (const number call : {5, 2, 9}) come(call, one, of_one);
  for (const number call : {4, 3}) come(call, two, of_one);
  come(1, one, of_two);
  come(6, two);
  for (const number call : {5, 2, 9, 4, 3, 1, 6}) on(held{call});
  BOOST_TEST(waiting() == 7u);
  BOOST_TEST(on(node_down{two, broken}) == "refuse 6, refuse 3, refuse 4");
  BOOST_TEST(on(context_closed{{two, 8}, broken}) == "");
  BOOST_TEST(on(context_closed{of_one, broken}) == "refuse 2, refuse 5, refuse 9");
  BOOST_TEST(waiting() == 1u);
}

BOOST_AUTO_TEST_CASE(an_answer_that_leaves_ends_with_its_caller) {  // HW-4
  come(1);
  run(1);
  on(answered{1, 10});
  on(node_down{one, broken});
  BOOST_TEST(is_empty());
  BOOST_TEST(on(answer_left{1}) == "");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(each_caller_has_a_limit_of_its_own) {  // QL-1
  calls_of_node all({.waiting_bytes = 100});
  const auto come = [&](number call, node_id caller, std::uint64_t bytes) {
    const auto text = all.come(call, caller, {}, bytes);
    all.on(core::held{call});
    return text;
  };
  BOOST_TEST(come(1, one, 60) == "");
  BOOST_TEST(come(2, one, 41) == "refuse_excess_bytes 2");
  BOOST_TEST(come(3, one, 40) == "");
  BOOST_TEST(all.bytes_of(one) == 100u);
  BOOST_TEST(come(4, two, 1000) == "");  // a single call is taken whatever its size
  BOOST_TEST(come(5, two, 1) == "refuse_excess_bytes 5");
  BOOST_TEST(come(6, two, 0) == "");  // of the node itself
  all.on(core::refused{1, broken});
  BOOST_TEST(all.bytes_of(one) == 40u);
  BOOST_TEST(come(7, one, 60) == "");
  for (const number call : {3, 7}) all.on(core::wait_over{call});
  BOOST_TEST(all.bytes_of(one) == 0u);
}

BOOST_AUTO_TEST_CASE(calls_of_a_caller_without_credit_wait_and_others_do_not) {  // AU-1, AU-2
  calls_of_node all({.workers = 4, .answer_bytes = 100});
  const auto start = [&](number call, node_id caller) {
    all.come(call, caller);
    return all.run(call);
  };
  start(1, one);
  all.on(core::answered{1, 100});
  BOOST_TEST(start(2, one) == "limit 2");
  BOOST_TEST(start(3, two) == "start 3");
  BOOST_TEST(all.on(core::answer_left{1}) == "ask_taken");
  BOOST_TEST(all.on(core::answers_taken{one, 100}) == "start 2");
}

// HW-1: a peer that makes many calls and then releases one context after another would hold up all others.
BOOST_AUTO_TEST_CASE(very_many_calls_are_found_by_their_contexts_one_by_one) {
  const auto find = [](int count) {
    const auto many = static_cast<number>(count);
    core all({});
    for (number call = 1; call <= many; ++call) {
      all.on(core::came{call, one, {one, call}});
      all.on(core::held{call});
    }
    std::size_t found = 0;
    for (number call = 1; call <= many; ++call) found += all.on(core::context_closed{{one, call}, broken}).size();
    BOOST_TEST(found == many);
  };
  BOOST_TEST(test::growth_of_time(find, 1'000, 100'000) < 1'000);  // 10,000 if each call were looked for among all
}

namespace {

/// One node and the others around it, which do what a seed says.
class drawn_node {
 public:
  explicit drawn_node(std::uint64_t seed) : random_(seed) {}

  void run() {
    for (int steps = 60; steps > 0; --steps) {
      if (below(3) == 0 || !let_one_happen()) come_or_break();
      check();
    }
    while (let_one_happen()) check();
    BOOST_TEST_REQUIRE(core_.is_empty());
    BOOST_TEST_REQUIRE(workers_.size() == 0u);
    for (const auto& [which, call] : calls_) require(call.ends == 1, which, "does not end once");
    for (const auto& [caller, bytes] : under_way_) BOOST_TEST_REQUIRE(bytes < most_answers / 4);  // AU-2
    BOOST_TEST_REQUIRE((series_.empty() && !core_.has_series()));
  }

 private:
  enum class phase { here, waits, queued, runs, over };
  struct call {
    core::came facts;
    phase at = phase::here;
    core::worker on = 0;
    bool is_blocked = false, has_answer = false, limited = false, is_short = false;
    std::uint64_t bytes = 0;  // of the answer
    int ends = 0;
  };
  enum class kind { wait_over, deadline, runs, blocked, leaves, taken, tick, leaves_series };
  struct open {
    kind what;
    number call = 0;
    core::ask_taken question = {};
  };
  static constexpr std::uint64_t most_waiting = 100;
  static constexpr std::uint64_t most_answers = 50;
  static constexpr std::size_t workers = 2;
  static constexpr std::size_t most_begun = 3;
  static constexpr std::size_t most_idle = 4;

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  static void require(bool is_so, number which, const char* what) {
    if (!is_so) BOOST_REQUIRE_MESSAGE(false, "call " << which << ": " << what);
  }

  void come_or_break() {
    const node_id caller{1 + below(3)};
    const context_id context{node_id{9}, below(3)};
    if (below(16) == 0 && context) return act(core::context_closed{context, broken});
    if (below(16) == 0) {
      std::erase_if(open_, [&](const open& each) {
        return (each.what == kind::taken && each.question.caller == caller) ||
               (each.what == kind::leaves && calls_.at(each.call).facts.caller == caller && calls_.at(each.call).bytes > 0);
      });
      for (auto& [which, it] : calls_)
        if (it.facts.caller == caller && it.has_answer && it.at == phase::runs && it.bytes > 0) end(it);
      under_way_.erase(caller);
      return act(core::node_down{caller, broken});
    }
    const core::came facts{++last_, caller, context, below(2), below(8) == 0 ? 0 : 1 + below(130)};
    const auto waiting = bytes_of(caller);
    calls_[last_].facts = facts;
    const bool is_taken = core_.on(facts).empty();
    require(is_taken == (waiting == 0 || facts.bytes == 0 || waiting + facts.bytes <= most_waiting), last_,
            "is taken, or not");  // QL-1
    is_taken ? look_at(last_) : end(calls_[last_]);
  }

  void look_at(number which) {
    auto& it = calls_.at(which);
    switch (below(4)) {
      case 0:
        act(core::dropped{which});
        return end(it);
      case 1:
        it.at = phase::waits;
        open_.push_back({kind::wait_over, which});
        return act(core::held{which});
      default:
        it.at = phase::queued;
        order_.push_back(which);
        it.is_short = below(2) == 0;
        return act(core::ready{{which}, it.is_short});
    }
  }

  bool let_one_happen() {
    if (open_.empty()) return false;
    const auto at = open_.begin() + static_cast<std::ptrdiff_t>(below(open_.size()));
    const auto now = *at;
    open_.erase(at);
    const auto which = now.call;
    switch (now.what) {
      case kind::wait_over:
        return act(core::wait_over{which}), true;
      case kind::deadline:
        if (calls_.at(which).at == phase::queued && below(4) != 0) return open_.push_back(now), true;
        return act(core::refused{which, broken}), true;
      case kind::runs:
        return run(which, calls_.at(which)), true;
      case kind::blocked:
        calls_.at(which).is_blocked = false;
        open_.push_back({kind::runs, which});
        return act(core::is_resumed{}), true;
      case kind::leaves:
        end(calls_.at(which));
        return act(core::answer_left{which}), true;
      case kind::leaves_series:
        if (!series_.empty() && series_.back() == which) leave_series(which);
        return true;
      case kind::taken: {
        auto& bytes = under_way_[now.question.caller];
        bytes -= std::min(bytes, now.question.bytes);
        return act(core::answers_taken{now.question.caller, now.question.bytes}), true;
      }
      case kind::tick: {  // PW-3
        auto unneeded = workers_;
        std::erase_if(unneeded, [&](const auto& each) { return !each.second || were_needed_.contains(each.first); });
        ticks_ = true;
        act(core::tick{});
        ticks_ = false;
        were_needed_.clear();
        for (const auto& [worker, is_idle] : unneeded) BOOST_TEST_REQUIRE(!workers_.contains(worker));
        for (const auto& [worker, is_idle] : workers_)
          if (!is_idle) were_needed_.insert(worker);
        return true;
      }
    }
    return true;
  }

  void run(number which, call& it) {
    if (below(3) == 0) {
      it.is_blocked = true;
      open_.push_back({kind::blocked, which});
      return act(core::is_blocked{});
    }
    it.has_answer = true;
    it.bytes = below(3) == 0 ? 0 : 1 + below(40);
    if (it.bytes > 0) {
      under_way_[it.facts.caller] += it.bytes;
      act(core::answered{which, it.bytes});
    }
    open_.push_back({kind::leaves, which});
    const auto worker = std::exchange(it.on, 0);
    end_in_series(which);
    workers_.at(worker) = std::ranges::count_if(calls_, [&](const auto& each) { return each.second.on == worker; }) == 0;
    act(core::is_free{worker, it.facts.depth});
    BOOST_TEST_REQUIRE(std::ranges::count(workers_, true, &std::pair<const core::worker, bool>::second) <=
                       static_cast<std::ptrdiff_t>(most_idle));  // PW-3
  }

  /// The next call of the series runs, if this call was the one that ran.
  void end_in_series(number which) {
    if (series_.empty() || series_.front() != which) return;
    series_.pop_front();
    if (!series_.empty()) open_.push_back({kind::runs, series_.front()});
  }

  /// The last call of the series, which does not run yet unless it is the only one, goes back into the queue.
  void leave_series(number which) {
    auto& it = calls_.at(which);
    if (series_.size() == 1) {
      if (it.is_blocked ||
          std::erase_if(open_, [&](const open& each) { return each.what == kind::runs && each.call == which; }) == 0)
        return;
      workers_.at(it.on) = true;
    }
    series_.pop_back();
    it.on = 0;
    it.at = phase::queued;
    order_.push_back(which);
    act(core::leaves_series{{which}});
  }

  void act(const core::event& what) {
    const auto* down = std::get_if<core::node_down>(&what);
    const auto* closed = std::get_if<core::context_closed>(&what);
    const auto effects = core_.on(what);
    for (const auto& each : effects)
      if (const auto* ended = std::get_if<core::refuse>(&each)) {
        const auto& facts = calls_.at(ended->call).facts;
        require((down == nullptr || facts.caller == down->who) && (closed == nullptr || facts.context == closed->context),
                ended->call, "is refused for another one");
      }
    effects_.insert(effects_.end(), effects.begin(), effects.end());
    if (std::exchange(carries_out_, true)) return;
    for (; !effects_.empty(); effects_.pop_front())
      std::visit([this](const auto& effect) { carry_out(effect); }, core::effect(effects_.front()));
    carries_out_ = false;
  }

  void carry_out(const core::refuse_excess_bytes& what) { require(false, what.call, "is turned away"); }
  void carry_out(const core::limit& what) {
    auto& it = calls_.at(what.call);
    require(it.at == phase::waits || it.at == phase::queued, what.call, "is limited");
    if (!std::exchange(it.limited, true)) open_.push_back({kind::deadline, what.call});
  }
  void carry_out(const core::go_on& what) {
    auto& it = calls_.at(what.call);
    require(it.at == phase::waits, what.call, "goes on");
    it.at = phase::here;
    look_at(what.call);
  }
  void carry_out(const core::start& what) {
    auto& it = calls_.at(what.call);
    const std::pair line{it.facts.caller, it.facts.depth};
    require(it.at == phase::queued, what.call, "starts");
    require(std::ranges::find_if(order_,
                                 [&](number each) {
                                   const auto& first = calls_.at(each);
                                   return first.at == phase::queued && first.facts.caller == line.first &&
                                          first.facts.depth == line.second;
                                 }) == std::ranges::find(order_, what.call),
            what.call, "starts before an earlier one");                                                         // PW-2
    require(begun(it.facts.depth) < most_begun && has_credit(it.facts.caller), what.call, "starts too early");  // PW-1, AU-1
    require(what.joins_series ? it.is_short && !series_.empty() : computing() < workers, what.call,
            "has no slot");  // PW-6, HW-5
    std::erase(order_, what.call);
    it.at = phase::runs;
    if ((!what.on && below(6) == 0) || (what.joins_series && below(10) == 0)) {
      it.at = phase::queued;  // it counts as one that has not started
      return act(core::no_worker{what.call, broken});
    }
    if (what.joins_series) {
      it.on = *what.on;
      series_.push_back(what.call);
      if (below(3) == 0) open_.push_back({kind::leaves_series, what.call});
      return;
    }
    it.on = what.on.value_or(last_worker_ + 1);
    require(what.on ? workers_.at(it.on) : ++last_worker_ > 0, what.call, "runs on a worker that is not idle");
    workers_[it.on] = false;
    were_needed_.insert(it.on);
    open_.push_back({kind::runs, what.call});
    if (core_.has_series() || below(2) == 0) return;
    series_ = {what.call};
    if (below(4) == 0) open_.push_back({kind::leaves_series, what.call});
    act(core::begins_series{what.call, it.on});
  }
  void carry_out(const core::refuse& what) {
    auto& it = calls_.at(what.call);
    require(it.at == phase::waits || it.at == phase::queued, what.call, "is refused");  // HW-3
    std::erase(order_, what.call);
    end(it);
  }
  void carry_out(const core::let_go& what) {
    BOOST_TEST_REQUIRE(workers_.at(what.who));
    if (ticks_) BOOST_TEST_REQUIRE(!were_needed_.contains(what.who));
    workers_.erase(what.who);
  }
  void carry_out(const core::tick_later&) {
    BOOST_TEST_REQUIRE(std::ranges::count(open_, kind::tick, &open::what) == 0);
    open_.push_back({kind::tick});
  }
  void carry_out(const core::ask_taken& what) { open_.push_back({kind::taken, 0, what}); }

  static void end(call& it) {
    it.at = phase::over;
    ++it.ends;
  }

  std::uint64_t bytes_of(node_id caller) const {
    std::uint64_t result = 0;
    for (const auto& [which, it] : calls_)
      if (it.facts.caller == caller && (it.at == phase::waits || it.at == phase::queued)) result += it.facts.bytes;
    return result;
  }
  std::size_t computing() const {
    return static_cast<std::size_t>(std::ranges::count_if(calls_, [this](const auto& each) {
      const bool waits_in_series = std::ranges::find(series_, each.first) != series_.end() && series_.front() != each.first;
      return each.second.on != 0 && !each.second.is_blocked && !waits_in_series;
    }));
  }
  std::size_t begun(std::size_t depth) const {
    return static_cast<std::size_t>(
      std::ranges::count_if(calls_, [&](const auto& each) { return each.second.on != 0 && each.second.facts.depth == depth; }));
  }
  bool has_credit(node_id caller) const {
    const auto found = under_way_.find(caller);
    return found == under_way_.end() || found->second < most_answers;
  }

  void check() const {
    for (std::uint64_t caller = 1; caller <= 3; ++caller)
      BOOST_TEST_REQUIRE(core_.bytes_of(node_id{caller}) == bytes_of(node_id{caller}));
    std::size_t waiting = 0;
    for (const auto& [which, it] : calls_) {
      if (it.at != phase::waits && it.at != phase::queued) continue;
      ++waiting;
      require(it.limited, which, "has no deadline");
      if (it.at == phase::queued)  // PW-1
        require(computing() >= workers || begun(it.facts.depth) >= most_begun || !has_credit(it.facts.caller), which,
                "waits for nothing");
    }
    BOOST_TEST_REQUIRE(core_.waiting() == waiting);
    BOOST_TEST_REQUIRE(core_.most_bytes() == most_waiting);
  }

  std::mt19937_64 random_;
  core core_{{.workers = workers,
              .most_idle = most_idle,
              .most_begun = most_begun,
              .waiting_bytes = most_waiting,
              .answer_bytes = most_answers}};
  number last_ = 0;
  core::worker last_worker_ = 0;
  std::map<number, call> calls_;
  std::vector<number> order_;         // queued calls, as they became ready
  std::deque<number> series_;         // its first call runs
  std::deque<core::effect> effects_;  // in the order in which the desk carries them out
  bool carries_out_ = false;
  std::map<core::worker, bool> workers_;  // whether they are idle
  bool ticks_ = false;
  std::set<core::worker> were_needed_;          // since the last tick
  std::map<node_id, std::uint64_t> under_way_;  // bytes of answers that count
  std::vector<open> open_;                      // what may happen
};

}  // namespace

// HW-3, HW-4, QL-1, PW-1, PW-2, PW-3, AU-1, AU-2 in 5,000 drawn lives of a node
BOOST_AUTO_TEST_CASE(calls_end_once_and_no_limit_is_passed_whatever_happens, *boost::unit_test::label("explored")) {
  for (std::uint64_t seed = 1; seed <= 5'000; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) drawn_node(seed).run();
  }
}

BOOST_AUTO_TEST_SUITE_END()
