// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/greetings.hpp>

#include <chrono>
#include <cstdint>
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

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()
