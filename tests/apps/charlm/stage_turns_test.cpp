// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/stage_turns.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

using namespace troupe::apps::charlm;

BOOST_AUTO_TEST_SUITE(turns_of_a_stage)

namespace {

using work = stage_work;

struct stage_of_a_pipeline {
  stage_of_a_pipeline(schedule how, stage_position position, std::int64_t count)
      : turns(std::make_shared<stage_turns>(how, position)) {
    for (std::int64_t number = 0; number < count; ++number) all.emplace_back(std::in_place, turns, number);
  }
  auto& operator[](std::size_t number) { return *all.at(number); }
  /// Runs work that has its turn at once.
  void run(std::size_t number, work what) {
    BOOST_REQUIRE(all.at(number)->ask(what).ready());
    all.at(number)->end(what);
  }

  std::shared_ptr<stage_turns> turns;
  std::deque<std::optional<stage_turns::micro_batch>> all;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_stage_does_one_thing_at_a_time) {  // TG-1
  stage_of_a_pipeline stage(schedule::gpipe, {0, 2}, 2);
  BOOST_TEST(stage[0].ask(work::forward).ready());
  const auto next = stage[1].ask(work::forward);
  BOOST_TEST(!next.ready());
  stage[0].end(work::backward);  // it has no such turn
  BOOST_TEST(!next.ready());
  stage[0].end(work::forward);
  BOOST_TEST(next.ready());
}

BOOST_AUTO_TEST_CASE(backwards_come_first_then_the_lowest_forward_then_weights) {  // TG-2
  stage_of_a_pipeline stage(schedule::zero_bubble, {0, 4}, 5);
  stage[0].expect_weights();
  for (const std::size_t number : {0, 1}) stage.run(number, work::forward);
  stage.run(0, work::backward);
  BOOST_TEST(stage[4].ask(work::forward).ready());
  const auto weights = stage[0].ask(work::weights);
  const auto third = stage[3].ask(work::forward);
  const auto second = stage[2].ask(work::forward);
  const auto backward = stage[1].ask(work::backward);
  stage[4].end(work::forward);
  BOOST_TEST((backward.ready() && !second.ready() && !third.ready() && !weights.ready()));
  stage[1].end(work::backward);
  BOOST_TEST((second.ready() && !third.ready() && !weights.ready()));
  stage[2].end(work::forward);
  BOOST_TEST((third.ready() && !weights.ready()));
  stage[3].end(work::forward);
  BOOST_TEST(weights.ready());
}

BOOST_AUTO_TEST_CASE(weights_of_a_micro_batch_follow_each_other_unless_other_work_comes) {  // TG-2
  stage_of_a_pipeline stage(schedule::zero_bubble, {0, 3}, 3);
  for (const std::size_t number : {0, 1}) {
    for (int layer = 0; layer < 3; ++layer) stage[number].expect_weights();
    stage.run(number, work::forward);
    stage.run(number, work::backward);
  }
  BOOST_TEST(stage[1].ask(work::weights).ready());
  const auto lower = stage[0].ask(work::weights);
  stage[1].end(work::weights);
  BOOST_TEST((!lower.ready() && stage[1].ask(work::weights).ready()));
  const auto forward = stage[2].ask(work::forward);
  BOOST_TEST(!forward.ready());
  stage[1].end(work::weights);
  BOOST_TEST((forward.ready() && !lower.ready()));
  const auto last = stage[1].ask(work::weights);
  stage[2].end(work::forward);
  BOOST_TEST((lower.ready() && !last.ready()));
  stage.all[0].reset();
  BOOST_TEST(last.ready());
}

// Workers of a pass compute gradients of several weights at once.
BOOST_AUTO_TEST_CASE(weights_of_a_micro_batch_that_wait_at_once_all_get_turns) {  // TG-2
  stage_of_a_pipeline stage(schedule::zero_bubble, {0, 3}, 2);
  for (const std::size_t number : {0, 1}) {
    for (int layer = 0; layer < 2; ++layer) stage[number].expect_weights();
    stage.run(number, work::forward);
    stage.run(number, work::backward);
  }
  const auto first = stage[1].ask(work::weights);
  const auto second = stage[1].ask(work::weights);
  const auto lower = stage[0].ask(work::weights);
  BOOST_TEST((first.ready() && !second.ready()));
  stage[1].end(work::weights);
  BOOST_TEST((second.ready() && !lower.ready()));
  stage[1].end(work::weights);
  BOOST_TEST(lower.ready());
}

BOOST_AUTO_TEST_CASE(one_forward_one_backward_holds_as_many_as_stages_are_left) {  // TG-3
  for (std::int64_t index = 0; index < 3; ++index) {
    stage_of_a_pipeline stage(schedule::one_forward_one_backward, {index, 3}, 5);
    const auto most = static_cast<std::size_t>(3 - index);
    for (std::size_t number = 0; number < most; ++number) stage.run(number, work::forward);
    const auto next = stage[most].ask(work::forward);
    BOOST_TEST(!next.ready());
    stage.run(0, work::backward);
    BOOST_TEST(next.ready());
    BOOST_TEST(stage.turns->take().most_held == 3 - index);
  }
}

BOOST_AUTO_TEST_CASE(zero_bubble_holds_a_micro_batch_until_its_weights_are_done) {  // TG-3
  stage_of_a_pipeline stage(schedule::zero_bubble, {1, 2}, 3);
  for (const std::size_t number : {0, 1}) {
    stage[number].expect_weights();
    stage.run(number, work::forward);
    stage.run(number, work::backward);
  }
  const auto third = stage[2].ask(work::forward);
  BOOST_TEST(!third.ready());
  stage.run(0, work::weights);
  BOOST_TEST(third.ready());
  BOOST_TEST(stage.turns->take().most_held == 2);
}

BOOST_AUTO_TEST_CASE(gpipe_holds_all) {  // TG-3
  stage_of_a_pipeline stage(schedule::gpipe, {1, 2}, 9);
  for (std::size_t number = 0; number < 9; ++number) stage.run(number, work::forward);
  BOOST_TEST(stage.turns->take().most_held == 9);
}

BOOST_AUTO_TEST_CASE(a_micro_batch_that_ends_early_gives_all_back) {  // TG-4
  for (const bool in_backward : {false, true}) {
    stage_of_a_pipeline stage(schedule::one_forward_one_backward, {1, 2}, 3);
    BOOST_TEST(stage[0].ask(work::forward).ready());
    if (in_backward) {
      stage[0].end(work::forward);
      BOOST_TEST(stage[0].ask(work::backward).ready());
    }
    const auto gone = stage[1].ask(work::forward);
    const auto left = stage[2].ask(work::forward);
    stage.all[1].reset();
    BOOST_TEST(!left.ready());
    stage.all[0].reset();
    BOOST_TEST((left.ready() && !gone.ready()));
  }
}

BOOST_AUTO_TEST_CASE(times_and_the_most_held_are_counted_since_the_last_question) {
  stage_of_a_pipeline stage(schedule::zero_bubble, {0, 2}, 2);
  stage[0].expect_weights();
  for (const auto what : {work::forward, work::backward, work::weights}) stage.run(0, what);
  const auto found = stage.turns->take();
  const auto& times = found.times;
  BOOST_TEST((times.forward > 0 && times.backward > 0 && times.weights > 0));
  BOOST_TEST(times.span >= times.work());
  BOOST_TEST(found.most_held == 1);
  const auto nothing = stage.turns->take();
  BOOST_TEST(nothing.times.span == 0);
  BOOST_TEST(nothing.times.work() == 0);
  BOOST_TEST(nothing.most_held == 0);
}

BOOST_AUTO_TEST_SUITE_END()
