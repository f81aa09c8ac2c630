// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/stage_wait.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"

using namespace troupe::apps;
using namespace troupe::apps::charlm;
using troupe::apps::test::says;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(wait_for_stages)

namespace {

using stage_names = std::vector<std::string>;

/// Stages that are away at each look, in turn; the last entry counts for all later looks.
struct scripted_stages {
  std::deque<stage_names> looks;
  int tries = 0;
  stage_names lines = {};

  stage_wait::actions actions() {
    return {[this] {
              const auto now = looks.front();
              if (looks.size() > 1) looks.pop_front();
              return now;
            },
            [this](auto) { ++tries; }, [this](const std::string& line) { lines.push_back(line); }};
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_wait_ends_at_once_when_all_stages_are_up) {  // SW-2
  scripted_stages stages{{{}}};
  const stop_signal stop;
  BOOST_TEST(stage_wait(stages.actions(), 1h).until_all_are_up(stop));
  BOOST_TEST(stages.tries == 0);
  BOOST_TEST(stages.lines.empty());
}

BOOST_AUTO_TEST_CASE(a_wait_tells_who_is_away_and_tries_to_bring_them_back) {  // SW-1
  scripted_stages stages{{{"stage1", "stage2"}, {"stage1", "stage2"}, {"stage2"}, {}}};
  const stop_signal stop;
  BOOST_TEST(stage_wait(stages.actions(), 1h).until_all_are_up(stop));
  BOOST_TEST(stages.tries == 3);
  BOOST_TEST_REQUIRE(stages.lines.size() == 2u);
  BOOST_TEST(stages.lines[0].starts_with("waiting for stage1, stage2, away since "), stages.lines[0]);
  BOOST_TEST(stages.lines[0].ends_with("; for 1:00:00 at most (--retry-wait)"), stages.lines[0]);
  BOOST_TEST(stages.lines[1].starts_with("waiting for stage2, away since "), stages.lines[1]);
}

BOOST_AUTO_TEST_CASE(a_wait_whose_patience_is_over_names_the_stages) {  // SW-2
  scripted_stages stages{{{"stage2"}}};
  const stop_signal stop;
  stage_wait wait(stages.actions(), 300ms);
  BOOST_TEST(!wait.is_over());
  BOOST_CHECK_EXCEPTION(wait.until_all_are_up(stop), std::runtime_error,
                        says({"up again within ", "(--retry-wait)", "stage2 did not come back"}));
  BOOST_TEST(wait.is_over());
  const auto tries = stages.tries;
  BOOST_TEST(tries > 0);
  BOOST_CHECK_THROW(wait.until_all_are_up(stop), std::runtime_error);  // the patience counts over all waits
  BOOST_TEST(stages.tries == tries);
}

BOOST_AUTO_TEST_CASE(a_reason_is_told_once_whatever_its_numbers_are) {  // SW-3
  scripted_stages stages{{{}}};
  stage_wait wait(stages.actions(), 1h);
  for (const auto* why : {"no answer within 5.1 s", "no answer within 5.2 s", "no room", "no room"}) wait.tell_failure(why);
  BOOST_TEST_REQUIRE(stages.lines.size() == 2u);
  BOOST_TEST(stages.lines[0] == "trying again: no answer within 5.1 s; for 1:00:00 at most (--retry-wait)");
  BOOST_TEST(stages.lines[1].starts_with("trying again: no room; "), stages.lines[1]);
}

BOOST_AUTO_TEST_CASE(a_stop_ends_a_wait) {  // SW-2
  scripted_stages stages{{{"stage2"}}};
  stop_signal stop;
  auto actions = stages.actions();
  actions.bring_back = [&](auto) { stop.request(); };
  BOOST_TEST(!stage_wait(std::move(actions), 1h).until_all_are_up(stop));
}

BOOST_AUTO_TEST_SUITE_END()
