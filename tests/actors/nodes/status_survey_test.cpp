// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/status_survey.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/support/atoms.hpp>
#include <troupe/messages/caf_error.hpp>

using namespace troupe;
using namespace std::chrono_literals;
using nodes::status_survey;

namespace {

/// A node that asks members. Members up to `last_frozen` never answer, others answer at once; the node gives up a member after
/// the time that it was given.
struct node_that_asks {
  nodes::system_config config{nodes::system_config::for_tests{}};
  caf::actor_system system{config};
  caf::scheduler::test_coordinator& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  caf::scoped_actor self{system};
  std::vector<std::uint64_t> asked;
  std::set<std::chrono::nanoseconds> limits;
  std::uint64_t last_frozen = 0;
  bool is_frozen_itself = false;
  std::map<std::uint64_t, caf::typed_response_promise<node_status>> late;
  caf::actor gateway = system.spawn([this](caf::event_based_actor* own) {
    return caf::behavior{[=, this](support::status_atom, std::uint64_t who, std::int64_t left_ns) -> caf::result<node_status> {
                           asked.push_back(who);
                           limits.insert(std::chrono::nanoseconds(left_ns));
                           if (who > last_frozen) return status_of(who);
                           if (!is_frozen_itself)
                             own->delayed_send(caf::actor_cast<caf::actor>(own), std::chrono::nanoseconds(left_ns),
                                               support::deadline_atom::value, who);
                           return late.insert_or_assign(who, own->make_response_promise<node_status>()).first->second;
                         },
                         [this](support::deadline_atom, std::uint64_t who) {
                           late.at(who).deliver(make_error(errc::deadline_passed, "it did not answer"));
                         }};
  });
  nodes::status_survey_actor asker = nodes::spawn_status_survey(system);

  ~node_that_asks() {  // a system waits for its last actor
    self->send_exit(gateway, caf::exit_reason::user_shutdown);
    self->send_exit(asker, caf::exit_reason::user_shutdown);
    scheduler.run();
  }

  static node_status status_of(std::uint64_t who) {
    node_status status;
    status.self.id = {who};
    return status;
  }

  /// Begins a survey of members 1 to `count`.
  auto ask(std::uint64_t count, std::chrono::nanoseconds limit) {
    auto survey = std::make_shared<status_survey>();
    survey->gateway = gateway;
    for (std::uint64_t id = 1; id <= count; ++id) survey->members.push_back({id});
    survey->limit = limit;
    auto pending = self->request(asker, caf::infinite, survey);
    scheduler.run();
    return pending;
  }

  void pass(std::chrono::nanoseconds time) {
    scheduler.advance_time(time);
    scheduler.run();
  }

  template <class Pending>
  std::vector<status_survey::answer> answers(Pending& pending) {
    std::vector<status_survey::answer> result;
    pending.receive([&](const nodes::status_survey_ptr& all) { result = all->answers; },
                    [](const caf::error&) { BOOST_ERROR("the survey failed"); });
    return result;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(surveys_of_status, node_that_asks)

BOOST_AUTO_TEST_CASE(each_member_has_its_own_answer) {
  auto pending = ask(200, 4s);
  const auto all = answers(pending);
  BOOST_TEST_REQUIRE(all.size() == 200u);
  for (std::uint64_t id = 1; id <= 200; ++id) {
    BOOST_TEST_REQUIRE(all[id - 1].status.has_value());
    BOOST_TEST(all[id - 1].status->self.id.value == id);
  }
  auto nobody = ask(0, 4s);
  BOOST_TEST(answers(nobody).empty());
}

BOOST_AUTO_TEST_CASE(members_that_do_not_answer_leave_the_time_to_others) {  // SY-1
  last_frozen = status_survey::most_at_once - 1;
  auto pending = ask(1000, 4s);
  BOOST_TEST(asked.size() == 1000u);  // no time has passed yet
  pass(800ms);
  const auto all = answers(pending);
  for (std::uint64_t id = 1; id <= 1000; ++id) BOOST_TEST(all[id - 1].status.has_value() == (id > last_frozen));
  BOOST_TEST((all.front().problem == errc::deadline_passed));  // by the node that asked the member
}

BOOST_AUTO_TEST_CASE(only_so_many_members_are_asked_at_once) {  // SY-1
  last_frozen = status_survey::most_at_once;
  auto pending = ask(300, 4s);
  BOOST_TEST(asked.size() == status_survey::most_at_once);
  pass(1s);
  const auto all = answers(pending);
  BOOST_TEST(asked.size() == 300u);
  BOOST_TEST(all.back().status.has_value());
}

BOOST_AUTO_TEST_CASE(each_question_has_the_same_limit_and_a_few_questions_have_the_whole_time) {  // SY-2
  auto few = ask(status_survey::most_at_once, 4s);
  answers(few);
  BOOST_TEST((limits == std::set<std::chrono::nanoseconds>{3200ms}));
  limits.clear();
  auto more = ask(status_survey::most_at_once + 1, 4s);
  answers(more);
  BOOST_TEST((limits == std::set<std::chrono::nanoseconds>{1600ms}));
  limits.clear();
  auto many = ask(1000, 4s);
  answers(many);
  BOOST_TEST((limits == std::set<std::chrono::nanoseconds>{800ms}));
}

BOOST_AUTO_TEST_CASE(a_survey_ends_by_its_limit_if_no_member_answers) {  // SY-2
  last_frozen = 1000;
  auto pending = ask(1000, 4s);
  for (int i = 0; i < 40; ++i) pass(100ms);
  const auto all = answers(pending);
  BOOST_TEST(asked.size() == 5 * status_survey::most_at_once);
  for (const auto& each : all) BOOST_TEST((!each.status && each.problem == errc::deadline_passed));
  BOOST_TEST(to_exception(all.back().problem).what() ==
             std::string("it was not asked: nodes that do not answer took the time of 4 s; raise the deadline"));
}

BOOST_AUTO_TEST_CASE(a_survey_ends_by_its_limit_if_the_node_that_asks_does_not_answer) {  // SY-2
  last_frozen = 10;
  is_frozen_itself = true;
  auto pending = ask(10, 4s);
  pass(4s);
  const auto all = answers(pending);
  for (const auto& each : all) BOOST_TEST((!each.status && each.problem == caf::sec::request_timeout));
}

BOOST_AUTO_TEST_SUITE_END()
