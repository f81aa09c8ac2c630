// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/greetings.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/sec.hpp>

#include <troupe/messages/registration.hpp>

#include "support/contains.hpp"

BOOST_AUTO_TEST_SUITE(greetings_of_nodes)

namespace {

using namespace troupe;
using namespace troupe::membership;
using test::contains;

constexpr std::int64_t ms = 1'000'000;

member node(std::uint64_t id, std::string name, std::uint16_t port = 4000) {
  return {std::move(name), node_id{id}, "127.0.0.1", port};
}

/// The node "driver", and all that its greetings have asked for.
struct greeting_node {
  std::vector<greeting_effect> on(greeting_event event) { return all.on(std::move(event), now); }

  template <class Effect>
  static const Effect* find(const std::vector<greeting_effect>& effects) {
    for (const auto& each : effects)
      if (const auto* found = std::get_if<Effect>(&each)) return found;
    return nullptr;
  }
  template <class Effect>
  static const Effect& the(const std::vector<greeting_effect>& effects) {
    const auto* found = find<Effect>(effects);
    BOOST_TEST_REQUIRE(found != nullptr);
    return *found;
  }

  hello hello_of(const member& who) const { return {who.name, who.id, who.host, who.port, protocol_version}; }
  std::vector<greeting_effect> greeted_by(const member& who) { return on(hello_came{++callers, hello_of(who), nullptr, {}}); }
  /// Joins the address. Returns the number of the wait for the connection.
  std::uint64_t join(std::int64_t time_ns) {
    number = all.new_number();
    return the<dial_address>(on(join_begun{number, {.deadline_ns = now + time_ns}, "127.0.0.1", 4001})).wait;
  }
  welcome welcome_of(const member& who) const { return {who, {}, {}, 0}; }

  std::int64_t now = 1;
  std::uint64_t number = 0;
  std::uint64_t callers = 100;
  member_table table{node(1, "driver")};
  greeting_settings how;
  greetings all{table, how};
};

const member stage = node(2, "stage", 4001);

}  // namespace

BOOST_FIXTURE_TEST_SUITE(decisions, greeting_node)

BOOST_AUTO_TEST_CASE(a_join_dials_greets_and_ends_once) {  // GN-4, GN-1
  const auto dialled = join(10'000 * ms);
  const auto connected = on(address_connected{dialled, nullptr});
  const auto& hello = the<say_hello>(connected);
  BOOST_TEST(hello.greeting.name == "driver");
  BOOST_TEST(on(try_failed{dialled, caf::sec::request_timeout}).empty());
  BOOST_TEST(on(address_connected{dialled, nullptr}).empty());
  const auto met = on(hello_welcomed{hello.wait, welcome_of(stage), nullptr, {}});
  BOOST_TEST((the<join_ended>(met).how.first.id == stage.id));
  BOOST_TEST(!the<join_ended>(met).how.failure);
  BOOST_TEST(table.find_up(stage.id) != nullptr);
  BOOST_TEST(on(hello_welcomed{hello.wait, welcome_of(stage), nullptr, {}}).empty());
  BOOST_TEST(on(try_failed{hello.wait, caf::sec::request_timeout}).empty());
  BOOST_TEST(all.find_join(number) == nullptr);
}

BOOST_AUTO_TEST_CASE(a_join_tries_again_and_not_after_its_deadline) {  // GN-4
  auto wait = join(3'000 * ms);
  const auto until = now + 3'000 * ms;
  for (int tries = 1;; ++tries) {
    now += 200 * ms;
    const auto failed = on(try_failed{wait, caf::sec::request_timeout});
    if (const auto* ended = find<join_ended>(failed)) {
      BOOST_TEST((ended->how.failure == errc::deadline_passed));
      BOOST_TEST(tries > 5);
      break;
    }
    const auto& next = the<begin_pause>(failed);
    BOOST_TEST_REQUIRE(now + next.time.count() < until);
    BOOST_TEST(on(address_connected{wait, nullptr}).empty());  // GN-1
    now += next.time.count();
    wait = the<dial_address>(on(pause_over{next.wait})).wait;
  }
}

BOOST_AUTO_TEST_CASE(a_node_whose_bond_is_another_one_is_greeted_once_more) {
  table.met(stage, nullptr, {}, member_table::way::hears, now);
  table.left(stage.id, "left", now);
  const auto first = on(address_connected{join(10'000 * ms), nullptr});
  const auto second = on(hello_welcomed{the<say_hello>(first).wait, welcome_of(stage), nullptr, {}});
  BOOST_TEST((the<say_hello>(second).greeting.between == bond{1, 0}));
  BOOST_TEST((the<say_hello>(second).greeting.to == stage.id));
  auto answer = welcome_of(stage);
  answer.between = {1, 0};
  BOOST_TEST(find<join_ended>(on(hello_welcomed{the<say_hello>(second).wait, answer, nullptr, {}})) != nullptr);
}

BOOST_AUTO_TEST_CASE(the_table_hears_how_a_dial_ended_and_dials_again) {  // GN-5
  table.met(stage, nullptr, {}, member_table::way::hears, now);
  table.connection_lost(stage.id, now);
  const auto is_dialled = [&] {
    now += 1'000 * ms;
    return !table.beat(now, [](const known_peer&) { return false; }).dials.empty();
  };
  BOOST_TEST(!is_dialled());  // connection_lost() has asked for a dial
  for (int i = 0; i < 3; ++i) {
    const auto begun = on(dial_wanted{stage});
    on(try_failed{the<dial_address>(begun).wait, caf::sec::request_timeout});
    BOOST_TEST(is_dialled());
  }
  const auto begun = on(dial_wanted{stage});
  const auto ended = on(try_failed{the<dial_address>(begun).wait, caf::sec::cannot_connect_to_node});
  BOOST_TEST((the<member_steps>(ended).changes.at(0).what == peer_change::kind::gone));
}

BOOST_AUTO_TEST_CASE(a_name_is_its_holders_as_long_as_the_holder_gives_signs_of_life) {  // GN-2, GN-3
  table.met(stage, nullptr, {}, member_table::way::hears, now);
  const auto question = greeted_by(node(3, "stage", 4002));
  BOOST_TEST((the<ask_rival>(question).whom == stage.id));
  const auto answer = on(holder_answered{the<ask_rival>(question).wait});
  BOOST_TEST(contains(to_exception(the<refuse_hello>(answer).why).what(), "the name 'stage' is taken by node 'stage'"));
  BOOST_TEST(on(holder_silent{the<ask_rival>(question).wait}).empty());
  BOOST_TEST(table.find_up(stage.id) != nullptr);
}

BOOST_AUTO_TEST_CASE(a_name_goes_to_the_node_that_was_restarted_at_the_address) {  // GN-2
  table.met(stage, nullptr, {}, member_table::way::hears, now);
  const auto question = greeted_by(node(3, "stage", 4001));
  const auto answer = on(holder_silent{the<ask_rival>(question).wait});
  BOOST_TEST(the<accept_hello>(answer).caller == callers);
  BOOST_TEST(table.find(stage.id) == nullptr);
  BOOST_TEST(table.find_up(node_id{3}) != nullptr);
}

BOOST_AUTO_TEST_CASE(a_greeting_waits_for_an_unreachable_node_of_its_name_and_no_longer) {  // GN-3
  table.met(stage, nullptr, {}, member_table::way::hears, now);
  const auto begin = now;
  const auto question = greeted_by(node(3, "stage", 4002));
  auto waits = on(holder_silent{the<ask_rival>(question).wait});
  BOOST_TEST(table.find_up(stage.id) == nullptr);
  int answers = 0;
  while (answers == 0) {
    const auto& next = the<begin_pause>(waits);
    now += next.time.count();
    BOOST_TEST_REQUIRE(now - begin < 3'000 * ms);
    waits = on(pause_over{next.wait});
    answers += find<refuse_hello>(waits) != nullptr;
  }
  BOOST_TEST(now - begin >= 2'000 * ms);
  BOOST_TEST((the<refuse_hello>(waits).why == errc::peer_down));
}

BOOST_AUTO_TEST_CASE(a_second_process_of_a_kit_is_told_to_greet_again) {
  how.accept = [](node_id) { return false; };
  const auto answer = greeted_by(stage);
  BOOST_TEST((the<refuse_hello>(answer).why == errc::unknown_peer));
  BOOST_TEST(the<refuse_hello>(answer).warning == "");
  BOOST_TEST(table.find(stage.id) == nullptr);
}

BOOST_AUTO_TEST_CASE(all_that_waits_ends_when_the_node_stops) {  // GN-3, GN-4
  table.met(stage, nullptr, {}, member_table::way::hears, now);
  const auto question = greeted_by(node(3, "stage", 4002));
  join(10'000 * ms);
  const auto ended = on(node_stopped{});
  BOOST_TEST((the<refuse_hello>(ended).why == errc::stopping));
  BOOST_TEST((the<join_ended>(ended).how.failure == errc::stopping));
  BOOST_TEST(on(holder_silent{the<ask_rival>(question).wait}).empty());
  BOOST_TEST(on(dial_wanted{stage}).empty());
  BOOST_TEST(on(greeting_wanted{stage.id}).empty());
}

BOOST_AUTO_TEST_CASE(the_end_of_another_node_at_the_address_is_not_that_of_the_wanted_one) {  // MT-8
  const auto other = node(3, "stage", 4001);
  table.met(other, nullptr, {}, member_table::way::hears, now);
  table.left(other.id, "left", now);
  table.hear(node_id{9}, {{stage, 0, member_state::up}}, now);
  const auto first = on(address_connected{the<dial_address>(on(dial_wanted{stage})).wait, nullptr});
  const auto second = on(hello_welcomed{the<say_hello>(first).wait, welcome_of(other), nullptr, {}});
  BOOST_TEST((the<say_hello>(second).greeting.to == other.id));
  on(try_failed{the<say_hello>(second).wait, stopping_error(other, the<say_hello>(second).greeting)});
  BOOST_TEST((table.heard_of().about(stage.id).at(0).state != member_state::left));
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

/// A node and few others, which greet it, are greeted by it, claim the names of each other, end and come back. Beside the greetings stand the
/// plain rules of what has to follow each event: the effects as texts.
class drawn_greetings {
 public:
  explicit drawn_greetings(std::uint64_t seed) : random_(seed) {
    auto self = node(1, "driver");
    self.host = "0.0.0.0";
    self.formats = 3;
    self.devices = {c10::Device(c10::kCUDA, 1)};
    table_ = member_table(self);
    how_.heartbeat = std::chrono::nanoseconds(100 * ms);
    how_.accept = [this](node_id) { return accepts_; };
    how_.believes = [this](node_id) { return believes_; };
  }

  void run(int steps) {
    for (; steps > 0; --steps) {
      if (drawn(3) == 0 || open_.empty())
        begin();
      else
        let_next_happen();
    }
    if (drawn(4) == 0) stop();
    while (!open_.empty()) let_next_happen();
    require(waits_.empty() && joins_.empty());  // GN-3, GN-4
  }

 private:
  enum class kind { named_by_user, named_by_node, asked_by_table };
  enum class is { dials, greets, pauses, asks_rival, asks_holder, looks };
  struct waiting {
    is what;
    // of a greeting of this node
    std::uint64_t join = 0;
    kind why = kind::named_by_user;
    member whom = {};
    std::int64_t begun = 0, until = 0;
    node_id greeted = {};
    // of a greeting of another node
    std::uint64_t caller = 0;
    hello from = {};
    std::int64_t left = 0;
    member held_by = {};
    // nodes without a name
    std::vector<member_news> names = {};

    bool is_first() const { return why == kind::named_by_user; }
  };
  struct join {
    std::int64_t deadline = 0;
    bool is_patient = false;
    int open = 1;
    errc failure = errc::none;
    node_id first = {};  // the node that the user named
    std::int64_t met = 0;
    errc seen = errc::none;  // what stood in the way last, until that node answers
    std::string seen_text = {};
  };

  static void require(bool is_so, int line = __builtin_LINE()) {
    if (!is_so) BOOST_REQUIRE_MESSAGE(false, "the greetings differ, in line " << line);
  }
  std::uint64_t drawn(std::uint64_t limit) { return random_() % limit; }
  /// Below the limit, in steps of 25 ms: what is planned for one moment may happen in it.
  std::int64_t drawn_ns(std::int64_t limit) {
    constexpr auto step = 25 * ms;
    return step * static_cast<std::int64_t>(drawn(1 + static_cast<std::uint64_t>(limit / step)));
  }

  /// Five nodes. The fourth has the name of the first, the fifth name and address of the second.
  member draw_other() {
    const auto number = drawn(5);
    const char* names[] = {"a", "b", "c", "a", "b"};
    return node(2 + number, names[number], static_cast<std::uint16_t>(4002 + (number == 4 ? 1 : number)));
  }
  bond draw_bond(node_id with) {
    auto result = table_.between(with);
    if (drawn(5) == 0) ++result.partings;
    if (drawn(5) == 0) result = {};
    return result;
  }
  std::optional<route> draw_route() {
    if (drawn(3) == 0) return std::nullopt;
    return route{"10.0.0.1", "10.0.0.1", drawn(2) == 0 ? "10.0.0.9" : "2001:db8::9", drawn(2) == 0};
  }
  std::vector<member_news> draw_news(std::uint64_t most) {
    std::vector<member_news> result;
    for (auto count = drawn(most + 1); count > 0; --count)
      result.push_back({draw_other(), static_cast<std::uint32_t>(drawn(3)), static_cast<member_state>(drawn(5) == 0 ? 2 : 0)});
    return result;
  }
  caf::error draw_problem() {
    switch (drawn(8)) {
      case 0:
        return caf::sec::cannot_connect_to_node;
      case 1:
        return caf::sec::unexpected_message;
      case 2:
        return caf::sec::disconnect_during_handshake;
      case 3:
        return make_error(errc::refused, "no");
      case 4:
        return make_error(errc::unknown_peer, "not yet");
      case 5:
        return make_error(errc::peer_down, "is down");
      case 6:
        return make_error(errc::stopping, "is stopping");
      default:
        return caf::sec::request_timeout;
    }
  }

  // What happens.

  void begin() {
    now_ += drawn_ns(50 * ms);
    accepts_ = drawn(6) != 0;
    believes_ = drawn(4) != 0;
    const auto who = draw_other();
    switch (drawn(10)) {
      case 0: {
        const auto number = all_.new_number();
        const auto time = 25 * ms + drawn_ns(12'000 * ms);
        joins_[number] = {now_ + time, drawn(2) == 0};
        expect_dial({is::dials, number, kind::named_by_user, {{}, {}, who.host, who.port}, now_, now_ + time});
        return on(
          join_begun{number, {.deadline_ns = now_ + time, .is_patient = joins_[number].is_patient}, who.host, who.port});
      }
      case 1: {
        const auto least = std::max<std::int64_t>(table_.find(who.id) != nullptr ? 1'000 * ms : 5'000 * ms, 400 * ms);
        const auto number = next_join();
        joins_[number] = {now_ + least};
        expect_dial({is::dials, number, kind::asked_by_table, who, now_, now_ + least, who.id});
        return on(dial_wanted{who});
      }
      case 2: {
        const auto* peer = table_.find(who.id);
        if (peer != nullptr && peer->is_connected) {
          const auto number = next_join();
          joins_[number] = {now_ + 1'000 * ms};
          expect_hello({is::greets, number, kind::asked_by_table, peer->who, now_, now_ + 1'000 * ms, who.id});
        }
        return on(greeting_wanted{who.id});
      }
      case 3:
        if (table_.find(who.id) == nullptr) return;
        return be_introduced(who.id);
      case 4:
        table_.connection_lost(who.id, now_);
        return;
      case 5:
        if (drawn(3) == 0) table_.left(who.id, "left", now_);
        return;
      case 6:
        if (drawn(2) == 0) table_.suspect(who.id, now_);
        if (drawn(4) == 0) table_.beat(now_, [](const known_peer&) { return true; });
        return;
      default:
        return greet(who);
    }
  }
  void be_introduced(node_id by) {
    const auto news = draw_news(3);
    const auto path = draw_route();
    const auto number = next_join();
    joins_[number] = {now_ + 10'000 * ms};
    meets_ = {number, false, false, true, believed(by, news, path)};
    on(news_introduced{by, news, path});
  }
  std::vector<member_news> believed(node_id by, std::vector<member_news> news, const std::optional<route>& path) const {
    const bool is_elsewhere = path && !path->within_machine;
    std::erase_if(news, [&](const member_news& each) { return is_elsewhere || (!believes_ && each.who.id != by); });
    return news;
  }
  void greet(member who) {
    hello from{who.name, who.id, who.host, who.port, protocol_version};
    if (drawn(16) == 0) ++from.protocol;
    if (drawn(16) == 0) from.name = "driver";
    if (drawn(24) == 0) from.name = "not a name";
    if (drawn(24) == 0) from.id = drawn(2) == 0 ? node_id{} : table_.self().id;
    if (drawn(8) == 0) from.host = "0.0.0.0";
    if (drawn(2) == 0) from.to = drawn(4) == 0 ? node_id{77} : table_.self().id;
    if (drawn(4) == 0) from.to_name = drawn(3) == 0 ? "another" : "driver";
    from.between = draw_bond(who.id);
    from.incarnation = static_cast<std::uint32_t>(drawn(3));
    from.formats = static_cast<std::uint32_t>(drawn(4));
    if (drawn(2) == 0) from.devices = {c10::Device(c10::kCPU)};
    from.digest = drawn(2) == 0 ? table_.heard_of().digest(table_.self().id, from.id) : drawn(100);
    const auto path = draw_route();
    const auto caller = all_.new_number();
    waiting judged{.what = is::pauses, .caller = caller, .from = from, .left = 800 * ms};
    const bool is_elsewhere = path && !path->within_machine;
    const bool is_own_name = from.name == "driver" && from.id.value != 0 && from.id != table_.self().id;
    if (from.protocol != protocol_version)
      expect_refusal(caller, errc::refused, "version");
    else if (from.id.value == 0 || from.id == table_.self().id || from.name == "not a name" || from.name == "driver")
      expect_refusal(caller, errc::refused, is_own_name && path ? "10.0.0.1" : "");  // where the other node reaches this one
    else if (from.to_name == "another")
      expect_refusal(caller, errc::unknown_peer, "looks for");
    else if (is_elsewhere && from.host == "127.0.0.1")
      expect_refusal(caller, errc::refused, "--advertise");
    else {
      if (path && from.host == "0.0.0.0") judged.from.host = path->other;
      judge(judged);
    }
    on(hello_came{caller, from, nullptr, path});
  }
  void stop() {
    for (const auto& [wait, what] : waits_)
      if (what.caller != 0) expect_refusal(what.caller, what.from.to == node_id{77} ? errc::unknown_peer : errc::stopping, "");
    for (const auto& [number, each] : joins_) expected_.push_back(end_of(number, errc::stopping, each.first, each.met));
    joins_.clear();
    std::ranges::sort(expected_);
    is_stopping_ = true;
    waits_.clear();
    on(node_stopped{});
    on(dial_wanted{draw_other()});
    on(greeting_wanted{draw_other().id});
  }
  void let_next_happen() {
    const auto at = open_.begin();
    now_ = std::max(now_, at->first);
    const auto wait = at->second;
    open_.erase(at);
    accepts_ = drawn(6) != 0;
    believes_ = drawn(4) != 0;
    const auto found = waits_.find(wait);
    auto what = found == waits_.end() ? waiting{static_cast<is>(drawn(6))} : found->second;
    const bool is_over = found == waits_.end();
    if (!is_over && drawn(12) == 0) return come_too_late(wait, what.what);
    if (!is_over) waits_.erase(found);
    switch (what.what) {
      case is::dials:
        return drawn(3) == 0 ? fail(wait, what, is_over) : connect(wait, what, is_over);
      case is::greets:
        return drawn(3) == 0 ? fail(wait, what, is_over) : be_welcomed(wait, what, is_over);
      case is::pauses:
        if (!is_over && what.caller != 0) judge(what);
        if (!is_over && what.caller == 0) expect_dial(what);
        return on(pause_over{wait});
      case is::looks:
        if (!is_over) look(what);
        return on(pause_over{wait});
      case is::asks_rival:
      case is::asks_holder:
        return drawn(2) == 0 ? holder_answers(wait, what, is_over) : holder_is_silent(wait, what, is_over);
    }
  }
  /// An event of another kind, for which the greeting does not wait. GN-1.
  void come_too_late(std::uint64_t wait, is what) {
    const bool is_outgoing = what == is::dials || what == is::greets || (what == is::pauses && waits_.at(wait).caller == 0);
    open_.emplace(now_ + 1, wait);
    if (is_outgoing || what == is::looks) {
      on(holder_answered{wait});
      return on(holder_silent{wait});
    }
    on(address_connected{wait, nullptr});
    on(hello_welcomed{wait, {draw_other(), {}, {}, 0}, nullptr, {}});
    on(try_failed{wait, caf::sec::request_timeout});
  }

  void connect(std::uint64_t wait, const waiting& to, bool is_over) {
    const bool is_itself = drawn(12) == 0;
    if (!is_over && is_itself && to.is_first())
      settle(to.join, true, errc::refused);
    else if (!is_over)
      expect_hello(to);
    on(address_connected{wait, nullptr, is_itself});
  }
  void fail(std::uint64_t wait, const waiting& to, bool is_over) {
    const auto problem = draw_problem();
    if (!is_over) {
      const bool is_silent = problem == caf::sec::request_timeout || problem == caf::sec::disconnect_during_handshake;
      const bool is_nobody = problem == caf::sec::cannot_connect_to_node || problem == errc::unknown_peer;
      const auto reason = problem == caf::sec::request_timeout                         ? errc::deadline_passed
                          : problem == caf::sec::unexpected_message                    ? errc::refused
                          : problem.category() == caf::error(errc::refused).category() ? static_cast<errc>(problem.code())
                                                                                       : errc::unknown_peer;
      auto pause = std::max(100 * ms, std::min((now_ - to.begun) / 8, 1'000 * ms));
      const auto most = to.is_first() ? 5'000 * ms : 300 * ms;  // where nobody listens
      const auto& of = joins_.at(to.join);
      const bool may_come = (to.is_first() && of.is_patient && reason != errc::refused) || is_silent ||
                            (is_nobody && now_ + pause < to.begun + most);
      if (to.why != kind::asked_by_table && may_come && now_ + pause < to.until) {
        auto next = to;
        next.what = is::pauses;
        expect_pause(next, pause);
        if (to.is_first()) {
          joins_.at(to.join).seen = reason;
          const bool is_late = problem == caf::sec::request_timeout;
          joins_.at(to.join).seen_text = !is_late                ? ""
                                         : to.what == is::greets ? "no answer to the greeting from "
                                                                 : "no answer from ";
          expected_.push_back("changed " + std::to_string(to.join));
        }
      } else {
        settle(to.join, to.is_first(), to.why == kind::asked_by_table ? errc::none : reason);
        ended_ = to.whom.id;
      }
    }
    on(try_failed{wait, problem});
  }
  void be_welcomed(std::uint64_t wait, const waiting& to, bool is_over) {
    auto who = draw_other();
    if (to.whom.id != node_id{} && drawn(4) != 0) who = to.whom;
    if (who.name.empty() || who.id == node_id{}) who = draw_other();
    if (drawn(20) == 0) who.name = "driver";
    welcome answer{who, draw_news(2), draw_bond(who.id), static_cast<std::uint32_t>(drawn(3))};
    const auto path = draw_route();
    if (!is_over) expect_after_welcome(to, answer, path);
    on(hello_welcomed{wait, answer, nullptr, path});
  }
  void expect_after_welcome(const waiting& to, const welcome& answer, const std::optional<route>& path) {
    auto who = answer.self;
    if (path && !path->within_machine) who.host = path->other;
    const auto end = [&](errc problem) {
      ended_ = to.whom.id;
      settle(to.join, to.is_first(), problem);
    };
    if (!to.whom.name.empty() && who.name != to.whom.name) return end(errc::none);
    ended_ = to.whom.id;
    auto then = table_;
    if (to.whom.id != node_id{})
      then.dialled(to.whom.id, who.id == to.whom.id ? member_table::dial_end::reached : member_table::dial_end::another_listens,
                   now_);
    if (const auto* known = then.find(who.id); known == nullptr || known->who.name != who.name) {
      const auto* rival = living_rival(then, who);
      const auto* holder = other_holder(then, who);
      const bool is_taken = rival != nullptr || holder != nullptr;
      if (who.name == "driver" || (is_taken && to.is_first())) {
        expected_.push_back("farewell");
        return end(errc::refused);
      }
      if (is_taken) return end(errc::none);
    }
    if (!accepts_) {
      if (to.why == kind::asked_by_table) return end(errc::none);
      if (now_ + 100 * ms >= to.until) return end(errc::unknown_peer);
      auto next = to;
      next.what = is::pauses;
      return expect_pause(next, 100 * ms);
    }
    met_ = who.id;
    const auto before = then.between(who.id);
    if (std::max(before, answer.between) != answer.between && now_ < to.until) {
      auto next = to;
      next.greeted = who.id;
      return expect_hello(next);
    }
    // The other nodes of which it has told are dialled, and then the join goes on.
    meets_ = {to.join, to.is_first(), true, !answer.news.empty(), believed(who.id, answer.news, path), who.id};
  }
  void holder_answers(std::uint64_t wait, waiting from, bool is_over) {
    if (!is_over && from.what == is::asks_rival)
      expect_refusal(from.caller, errc::refused, address_of(from.held_by) + "; choose another one");
    else if (!is_over) {
      from.left -= 300 * ms;
      judge(from);
    }
    on(holder_answered{wait});
  }
  void holder_is_silent(std::uint64_t wait, waiting from, bool is_over) {
    if (!is_over && from.what == is::asks_rival) {
      auto then = table_;
      then.suspect(from.held_by.id, now_);
      if (table_.find_up(from.held_by.id) != nullptr) suspected_ = from.held_by.id;
      judge(from, then);
    } else if (!is_over && other_holder(table_, member_of(from.from)) != nullptr && from.left <= 300 * ms) {
      expect_refusal(from.caller, errc::peer_down, "does not answer");
    } else if (!is_over) {
      from.left -= 300 * ms;
      from.what = is::pauses;
      expect_pause(from, 100 * ms);
    }
    on(holder_silent{wait});
  }
  void look(const waiting& names) {
    const bool is_taken =
      std::ranges::any_of(names.names, [&](const member_news& each) { return table_.heard_of().is_left_out(each.who.id); });
    settle(names.join, false, is_taken ? errc::refused : errc::none);
  }

  // What has to follow.

  static std::string address_of(const member& who) {
    const auto host = contains(who.host, ":") ? "[" + who.host + "]" : who.host;
    return "(" + to_string(who.id) + ") at " + host + ":" + std::to_string(who.port);
  }

  static member member_of(const hello& from) { return {from.name, from.id, from.host, from.port}; }
  static const known_peer* living_rival(const member_table& table, const member& who) {
    for (const auto& [id, peer] : table.peers())
      if (id != who.id && peer.who.name == who.name && (peer.is_up || peer.who.host != who.host || peer.who.port != who.port))
        return &peer;
    return nullptr;
  }
  static const member* other_holder(const member_table& table, const member& who) {
    const auto* found = table.heard_of().find(who.name);
    if (found == nullptr || found->id == who.id || table.find(found->id) != nullptr) return nullptr;
    return found->host == who.host && found->port == who.port ? nullptr : found;
  }
  void judge(const waiting& from) { judge(from, table_); }
  void judge(waiting from, const member_table& table) {
    const auto who = member_of(from.from);
    const auto* rival = living_rival(table, who);
    if (rival != nullptr && rival->is_up) {
      from.what = is::asks_rival;
      from.held_by = rival->who;
      return expect("ask rival " + to_string(rival->who.id) + " 200", from);
    }
    if (rival != nullptr && (from.left > 100 * ms || now_ - rival->lost_ns < 2'000 * ms)) {
      from.left -= 100 * ms;
      from.what = is::pauses;
      return expect_pause(from, 100 * ms);
    }
    if (rival != nullptr) return expect_refusal(from.caller, errc::peer_down, "which is unreachable");
    if (const auto* holder = other_holder(table, who)) {
      from.what = is::asks_holder;
      return expect("ask holder " + to_string(holder->id) + " 200", from);
    }
    if (!accepts_) return expect_refusal(from.caller, errc::unknown_peer, "meanwhile");
    met_ = who.id;
    accepted_ = from;
    expected_.push_back("accept " + std::to_string(from.caller));
  }
  void expect(std::string text, waiting what) {
    expected_.push_back(std::move(text));
    next_waits_.push_back(std::move(what));
  }
  void expect_dial(waiting to) {
    to.what = is::dials;
    const auto patience = std::min(std::max<std::int64_t>(to.until - now_, 1), 15'000 * ms);
    expect("dial " + to.whom.host + ":" + std::to_string(to.whom.port) + " " + std::to_string(patience), to);
  }
  void expect_hello(waiting to) {
    to.what = is::greets;
    const auto patience = std::min(std::max<std::int64_t>(to.until - now_, 1), 1'000 * ms);
    expect("hello " + to.whom.name + to_string(to.greeted) + " " + std::to_string(patience), to);
  }
  void expect_pause(const waiting& what, std::int64_t time) { expect("pause " + std::to_string(time), what); }
  static std::string code(errc what) { return std::to_string(static_cast<int>(what)); }
  void expect_refusal(std::uint64_t caller, errc why, std::string text) {
    expected_.push_back("refuse " + std::to_string(caller) + " " + code(why));
    reason_ = std::move(text);
  }
  void settle(std::uint64_t number, bool is_first, errc problem) {
    auto& of = joins_.at(number);
    if (problem != errc::none && of.failure == errc::none &&
        (is_first || problem == errc::refused || problem == errc::peer_down))
      of.failure = problem;
    if (--of.open > 0) return;
    expected_.push_back(end_of(number, of.failure, of.first, of.met));
    joins_.erase(number);
  }
  static std::string end_of(std::uint64_t number, errc why, node_id first, std::int64_t met_ns) {
    return "ended " + std::to_string(number) + " " + code(why) + " " + to_string(first) + " " + std::to_string(met_ns);
  }
  /// The number that the greetings give to a join of their own.
  std::uint64_t next_join() {
    last_number_ = all_.new_number();
    return last_number_ + 1;
  }

  void on(const greeting_event& event) {
    const auto met = std::exchange(met_, std::nullopt);
    const auto meets = std::exchange(meets_, std::nullopt);
    const auto ended = std::exchange(ended_, node_id{});
    auto expected = std::exchange(expected_, {});
    auto waits = std::exchange(next_waits_, {});
    const auto effects = all_.on(event, now_);
    std::vector<std::string> texts;
    for (const auto& each : effects)
      if (auto text = std::visit([&](const auto& effect) { return text_of(effect); }, each); !text.empty())
        texts.push_back(text);
    if (meets) {
      expect_meeting(*meets, effects, waits);
      expected = std::exchange(expected_, {});
    }
    if (std::exchange(is_stopping_, false)) std::ranges::sort(texts);
    if (texts != expected) {
      std::string all;
      for (const auto& each : texts) all += each + ", ";
      all += "expected ";
      for (const auto& each : expected) all += each + ", ";
      BOOST_REQUIRE_MESSAGE(false, all);
    }
    std::size_t next = 0;
    for (const auto& each : effects) std::visit([&](const auto& effect) { note(effect, waits, next); }, each);
    require(next == waits.size());
    reason_.clear();
    if (met) require(table_.find(*met) != nullptr || table_.gone(*met) != nullptr);
    if (const auto* peer = table_.find(ended); peer != nullptr) require(!peer->dial.is_under_way);  // GN-5
    if (suspected_ != node_id{}) require(table_.find_up(std::exchange(suspected_, {})) == nullptr);
    for (const auto& [number, each] : joins_) {
      const auto* found = all_.find_join(number);
      require(found != nullptr && found->first.id == each.first && found->deadline_ns == each.deadline);
      require((found->seen ? static_cast<errc>(found->seen.code()) : errc::none) == each.seen);
      if (found->seen) require(contains(to_exception(found->seen).what(), each.seen_text));
    }
    std::set<std::string> names;
    for (const auto& [id, peer] : table_.peers()) require(names.insert(peer.who.name).second);  // GN-2
  }
  struct meeting {
    std::uint64_t join;
    bool is_first, is_welcome, has_news;
    std::vector<member_news> news;  // that count
    node_id by = {};
  };
  /// A join dials whom it has just heard of, and may wait for names. Which nodes these are, the table knows.
  void expect_meeting(const meeting& of, const std::vector<greeting_effect>& effects, std::vector<waiting>& waits) {
    auto& it = joins_.at(of.join);
    if (of.is_first) it = {std::min(it.deadline, now_ + 10'000 * ms), it.is_patient, it.open, it.failure, of.by, now_};
    const auto until = now_ + (it.deadline - now_) / 2;
    for (const auto& each : effects) {
      if (const auto* dialled = std::get_if<dial_address>(&each)) {
        require(of.has_news);
        member whom;
        for (const auto& who : table_.heard_of().members())
          if (who.host == dialled->host && who.port == dialled->port && table_.find(who.id) == nullptr) whom = who;
        require(whom.id != node_id{});
        ++it.open;
        next_waits_.clear();
        expect_dial({is::dials, of.join, kind::named_by_node, whom, now_, until, whom.id});
        waits.push_back(next_waits_[0]);
      } else if (const auto* pause = std::get_if<begin_pause>(&each)) {
        require(of.has_news && pause->time.count() == std::min(700 * ms, std::max<std::int64_t>(it.deadline - now_, 1)));
        ++it.open;
        auto names = of.news;
        std::erase_if(names, [&](const member_news& each) { return !table_.heard_of().is_left_out(each.who.id); });
        require(!names.empty());
        next_waits_.clear();
        expect_pause({.what = is::looks, .join = of.join, .names = names}, pause->time.count());
        waits.push_back(next_waits_[0]);
      }
    }
    next_waits_.clear();
    for (const auto& each : of.news)
      if (each.state == member_state::up)
        require(!table_.heard_of().about(each.who.id).empty() || table_.heard_of().is_left_out(each.who.id));
    if (of.is_welcome && of.has_news) expected_.push_back("introduce");
    settle(of.join, of.is_first, errc::none);
    if (of.is_first && joins_.contains(of.join)) expected_.push_back("changed " + std::to_string(of.join));
  }

  static std::string text_of(const member_steps&) { return {}; }
  static std::string text_of(const dial_address& what) {
    return "dial " + what.host + ":" + std::to_string(what.port) + " " + std::to_string(what.patience.count());
  }
  std::string text_of(const say_hello& what) const {
    const auto& said = what.greeting;
    const auto& own = table_.self();
    require(said.name == own.name && said.id == own.id && said.host == own.host && said.port == own.port);
    require(said.protocol == protocol_version && said.to_name == what.whom.name && said.formats == own.formats &&
            said.devices == own.devices);
    require(said.digest == table_.heard_of().digest(own.id, said.to) && said.between == table_.between(said.to));
    require(said.incarnation == table_.heard_of().incarnation());
    return "hello " + what.whom.name + to_string(said.to) + " " + std::to_string(what.patience.count());
  }
  static std::string text_of(const ask_rival& what) { return "ask rival " + to_string(what.whom) + " " + ms_of(what.patience); }
  static std::string text_of(const ask_holder& what) {
    return "ask holder " + to_string(what.whom) + " " + ms_of(what.patience);
  }
  static std::string ms_of(std::chrono::nanoseconds time) { return std::to_string(time.count() / ms); }
  static std::string text_of(const begin_pause& what) { return "pause " + std::to_string(what.time.count()); }
  std::string text_of(const accept_hello& what) const {
    const auto& said = accepted_.from;
    require(what.answer.self.id == table_.self().id && what.answer.between == table_.between(said.id));
    const bool has_heard_all = said.digest == table_.heard_of().digest(table_.self().id, said.id);
    require(what.answer.news.empty() == has_heard_all);
    require(what.answer.incarnation == table_.heard_of().incarnation());
    if (const auto* peer = table_.find(said.id))
      require(peer->who.host == said.host && peer->who.port == said.port && peer->who.formats == said.formats);
    const auto theirs = said.to == table_.self().id ? said.between : bond{};
    require(table_.between(said.id) >= theirs);
    return "accept " + std::to_string(what.caller);
  }
  std::string text_of(const refuse_hello& what) const {
    require(contains(to_exception(what.why).what(), reason_));
    return "refuse " + std::to_string(what.caller) + " " + std::to_string(what.why.code());
  }
  static std::string text_of(const say_farewell&) { return "farewell"; }
  static std::string text_of(const introduce&) { return "introduce"; }
  static std::string text_of(const join_changed& what) { return "changed " + std::to_string(what.join); }
  static std::string text_of(const join_ended& what) {
    const auto why = what.how.failure ? static_cast<errc>(what.how.failure.code()) : errc::none;
    return end_of(what.join, why, what.how.first.id, what.how.met_ns);
  }

  /// When what the greeting waits for will happen.
  void plan(std::uint64_t wait, std::int64_t delay, std::vector<waiting>& waits, std::size_t& next) {
    require(next < waits.size() && waits_.emplace(wait, waits[next++]).second);
    open_.emplace(now_ + delay, wait);
    if (drawn(8) == 0) open_.emplace(now_ + delay + drawn_ns(1'000 * ms), wait);  // once more, too late
  }
  void note(const dial_address& what, std::vector<waiting>& waits, std::size_t& next) {
    plan(what.wait, drawn_ns(what.patience.count()), waits, next);
  }
  void note(const say_hello& what, std::vector<waiting>& waits, std::size_t& next) {
    plan(what.wait, drawn_ns(what.patience.count()), waits, next);
  }
  void note(const ask_rival& what, std::vector<waiting>& waits, std::size_t& next) {
    plan(what.wait, drawn_ns(what.patience.count()), waits, next);
  }
  void note(const ask_holder& what, std::vector<waiting>& waits, std::size_t& next) {
    plan(what.wait, drawn_ns(what.patience.count()), waits, next);
  }
  void note(const begin_pause& what, std::vector<waiting>& waits, std::size_t& next) {
    plan(what.wait, what.time.count(), waits, next);
  }
  template <class Other>
  void note(const Other&, std::vector<waiting>&, std::size_t&) {}

  std::mt19937_64 random_;
  std::int64_t now_ = 1;
  bool accepts_ = true, believes_ = true, is_stopping_ = false;
  member_table table_{node(1, "driver")};
  greeting_settings how_;
  greetings all_{table_, how_};
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, waiting> waits_;
  std::map<std::uint64_t, join> joins_;
  std::multimap<std::int64_t, std::uint64_t> open_;  // when something happens to a wait
  // What has to follow the next event.
  std::vector<std::string> expected_;
  std::vector<waiting> next_waits_;
  std::string reason_;
  std::optional<node_id> met_;
  std::optional<meeting> meets_;
  node_id ended_, suspected_;
  waiting accepted_ = {is::pauses};
};

}  // namespace

// GN-1 to GN-5, in 2,000 drawn lives of a node
BOOST_AUTO_TEST_CASE(greetings_go_on_as_their_states_say_whatever_happens, *boost::unit_test::label("explored")) {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) drawn_greetings(seed).run(60);
  }
}

BOOST_AUTO_TEST_SUITE_END()
