// SPDX-License-Identifier: BSD-3-Clause
// Messages that troupe's own nodes never send in this way, but that may still come.
#include <boost/test/unit_test.hpp>

#include <memory>

#include <troupe/engine/protocol/participant.hpp>
#include <troupe/engine/protocol/purse.hpp>

using namespace troupe;
using namespace troupe::protocol;

namespace {

const node_id here{1};
const message_id first{1, here};
const message_id second{2, here};

}  // namespace

BOOST_AUTO_TEST_SUITE(participants)

// PA-2
BOOST_AUTO_TEST_CASE(gradients_that_come_twice_fail_the_pass_and_start_no_burst) {
  participant part(here, {first, second});
  auto all = whole_purse();
  BOOST_TEST(part.gradients(first, split(all), {}).start_burst);
  part.burst_ended(part.take_burst());
  const auto again = part.gradients(first, split(all), {});
  BOOST_REQUIRE(again.failure.has_value());
  BOOST_TEST(again.failure->find("arrived twice") != std::string::npos, *again.failure);
  BOOST_TEST(!again.start_burst);
  BOOST_TEST(part.over());
  BOOST_TEST(!part.gradients(second, split(all), {}).start_burst);
}

// PA-2
BOOST_AUTO_TEST_CASE(gradients_for_a_send_that_was_pruned_or_never_made_fail_the_pass) {
  for (const auto& send : {second, message_id{3, here}}) {
    participant part(here, {first, second});
    auto all = whole_purse();
    part.start(split(all));
    part.burst_ended(part.take_burst());
    BOOST_TEST((part.prune({first}, split(all)).drop == std::vector<message_id>{second}));
    part.burst_ended(part.take_burst());
    BOOST_TEST(part.gradients(send, split(all), {}).failure.has_value());
    BOOST_TEST(part.over());
  }
}

// PA-3
BOOST_AUTO_TEST_CASE(an_abort_that_is_asked_twice_is_answered_each_time) {
  participant part(here, {first});
  auto all = whole_purse();
  part.start(split(all));
  BOOST_TEST(!part.abort().answer_abort);
  BOOST_TEST(part.burst_ended(part.take_burst()).answer_abort);
  BOOST_TEST(part.abort().answer_abort);
}

// PA-4, PA-6, BS-1, BS-2
BOOST_AUTO_TEST_CASE(a_node_answers_its_parent_with_its_last_message_and_waits_for_its_children) {
  const node_id parent{2};
  const node_id child{3};
  participant part(here, {first, second}, std::make_shared<call_tree_place>(call_tree_place{parent, {child}}));
  auto all = whole_purse();
  part.gradients(first, split(all), {parent});
  auto down = part.take_burst();
  BOOST_TEST(down.answers == 1U);
  const auto to_child = down.give(child, false);
  BOOST_TEST(is_empty(down.carried));
  BOOST_TEST(!part.burst_ended(std::move(down)).quiet.has_value());  // waits for the child

  auto returned = to_child.carried;
  auto rest = split(returned);
  BOOST_TEST(!part.reported(std::move(rest), {child}).quiet.has_value());  // the child is not done
  part.gradients(second, std::move(returned), {child, 1});
  auto up = part.take_burst();
  BOOST_TEST(up.settles);
  const auto to_parent = up.give(parent, false);
  BOOST_TEST(to_parent.answers == 1U);
  BOOST_TEST(to_parent.carried.begun == 1U);
  BOOST_TEST(to_parent.carried.settled == 1U);
  BOOST_TEST(!part.burst_ended(std::move(up)).quiet.has_value());
  BOOST_TEST(part.settled());
  merge(all, to_parent.carried);
  BOOST_TEST(is_whole(all));
}

// PA-6: the weight has gone to another node, and the parent still needs an answer.
BOOST_AUTO_TEST_CASE(a_node_without_weight_answers_its_parent_when_its_child_is_done) {
  const node_id parent{2};
  const node_id child{3};
  participant part(here, {first}, std::make_shared<call_tree_place>(call_tree_place{parent, {child}}));
  part.gradients(first, whole_purse(), {parent});
  auto down = part.take_burst();
  down.give(child, false);
  part.burst_ended(std::move(down));
  const auto steps = part.reported({}, {child, 1});
  BOOST_REQUIRE(steps.quiet.has_value());
  BOOST_TEST(is_empty(steps.quiet->carried));
  BOOST_TEST(steps.quiet->to_parent);
  BOOST_TEST(steps.quiet->answers == 1U);
  BOOST_TEST(!part.reported({}, {child, 1}).quiet.has_value());  // once is enough
}

// PA-6: the answer of a child may overtake the end of the burst that sent the gradients.
BOOST_AUTO_TEST_CASE(an_answer_that_comes_before_the_burst_is_back_counts) {
  const node_id child{3};
  participant part(here, {first, second}, std::make_shared<call_tree_place>(call_tree_place{node_id{}, {child}}));
  part.gradients(first, whole_purse(), {node_id{7}});
  auto down = part.take_burst();
  auto to_child = down.give(child, true);
  part.reported(std::move(to_child.carried), {child, 1});
  const auto steps = part.burst_ended(std::move(down));
  BOOST_REQUIRE(steps.quiet.has_value());
  BOOST_TEST(!steps.quiet->to_parent);  // this node has none
  BOOST_TEST(is_whole(steps.quiet->carried));
  BOOST_TEST(steps.quiet->carried.settled == 0U);  // `second` waits
}

// PA-6: what others than children claim to answer has no effect.
BOOST_AUTO_TEST_CASE(a_node_waits_only_for_answers_of_its_children) {
  const node_id child{3};
  participant part(here, {first}, std::make_shared<call_tree_place>(call_tree_place{node_id{}, {child}}));
  part.gradients(first, whole_purse(), {node_id{7}});
  auto down = part.take_burst();
  down.give(child, true);
  BOOST_TEST(!part.burst_ended(std::move(down)).quiet.has_value());
  BOOST_TEST(!part.reported({}, {node_id{7}, 9}).quiet.has_value());
  BOOST_TEST(part.reported({}, {child, 9}).quiet.has_value());
}

BOOST_AUTO_TEST_SUITE_END()
