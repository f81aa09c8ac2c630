// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/single_process.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <vector>

#include "apps/charlm/corpus.hpp"

using namespace troupe::apps::charlm;

BOOST_AUTO_TEST_SUITE(turns_of_a_single_process)

namespace {

corpus some_text() {
  text of{{}, "a test"};
  for (int i = 0; i < 20'000; ++i) of.bytes.push_back("abc"[i % 3]);
  return {of, vocabulary::of(of.bytes), 8};
}

run_state at_step(std::int64_t step) {
  run_state state;
  state.shape = {.vocabulary = 3, .blocks = 1, .width = 8, .heads = 1, .context = 8};
  state.how.batch = 2;
  state.planned_steps = 100;
  state.step = step;
  return state;
}

}  // namespace

BOOST_AUTO_TEST_CASE(without_time_nothing_is_measured) {  // SP-1
  int asked = 0;
  single_process_turns turns(0, [&] {
    ++asked;
    return false;
  });
  const auto data = some_text();
  BOOST_TEST(!turns.measures());
  turns.begin(at_step(0), data, 1);
  BOOST_TEST(!turns.run_due(1));
  BOOST_TEST(asked == 0);
  BOOST_TEST(turns.speed().tokens_per_second == 0);
}

BOOST_AUTO_TEST_CASE(four_turns_come_due_at_even_fractions_and_each_runs_once) {  // SP-2
  single_process_turns turns(1e-3, [] { return false; });
  const auto data = some_text();
  turns.begin(at_step(0), data, 1);
  BOOST_TEST(turns.speed().tokens_per_second > 0);
  std::vector<int> ran;
  for (int percent = 0; percent < 100; ++percent)
    if (turns.run_due((percent + 0.5) / 100)) ran.push_back(percent);
  BOOST_TEST(ran == (std::vector<int>{20, 40, 60, 80}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_training_that_goes_on_has_its_turns_in_what_is_left) {  // SP-2
  single_process_turns turns(1e-3, [] { return false; });
  const auto data = some_text();
  turns.begin(at_step(50), data, 1);
  BOOST_TEST(!turns.run_due(0.55));
  BOOST_TEST(turns.run_due(0.605));
  BOOST_TEST(!turns.run_due(0.605));
}

BOOST_AUTO_TEST_CASE(turns_that_were_passed_over_run_as_one) {  // SP-2
  single_process_turns turns(1e-3, [] { return false; });
  const auto data = some_text();
  turns.begin(at_step(0), data, 1);
  BOOST_TEST(turns.run_due(0.5));
  BOOST_TEST(!turns.run_due(0.5));
  BOOST_TEST(turns.run_due(0.65));
}

BOOST_AUTO_TEST_SUITE_END()
