// SPDX-License-Identifier: BSD-3-Clause
// Messages that troupe's own nodes never send in this way, but that may still come.
#include <boost/test/unit_test.hpp>

#include <csignal>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/engine/protocol/participant.hpp>
#include <troupe/engine/protocol/weight_throwing.hpp>

#include "support/stderr_of_process.hpp"

using namespace troupe;
using namespace troupe::protocol;

namespace {

const node_id here{1};
const message_id first{1, here};
const message_id second{2, here};

/// The effect of this kind; null if there is none.
template <class Effect, class Effects>
Effect* one(Effects& effects) {
  for (auto& each : effects)
    if (auto* found = std::get_if<Effect>(&each)) return found;
  return nullptr;
}

using run_burst = participant::run_burst;
using report_quiet = participant::report_quiet;
using report_failure = participant::report_failure;
using answer_abort = participant::answer_abort;

/// The share of the burst that starts.
burst_share burst_of(participant::effects effects) { return std::move(one<run_burst>(effects)->share); }

}  // namespace

BOOST_AUTO_TEST_SUITE(participants)

// PA-2
BOOST_AUTO_TEST_CASE(gradients_that_come_twice_fail_the_pass_and_start_no_burst) {
  participant node({first, second});
  auto all = whole_weight();
  node.returned(burst_of(node.gradients(first, split(all), {})));
  auto again = node.gradients(first, split(all), {});
  const auto* failure = one<report_failure>(again);
  BOOST_REQUIRE(failure != nullptr);
  BOOST_TEST(failure->why.text.find("arrived twice") != std::string::npos, failure->why.text);
  BOOST_TEST(again.size() == 1u);
  BOOST_TEST(node.over());
  BOOST_TEST(node.gradients(second, split(all), {}).empty());
}

BOOST_AUTO_TEST_CASE(a_part_that_is_over_is_asked_no_question) {
  participant node({first});
  node.abort();
  BOOST_TEST_REQUIRE(node.over());
  const auto [text, signal] = test::stderr_of_process([&] { node.discover({first}); });
  BOOST_TEST(signal == SIGABRT);
  BOOST_TEST(text.find("expected !over()") != std::string::npos, text);
}

// PA-2
BOOST_AUTO_TEST_CASE(gradients_for_a_send_that_was_pruned_or_never_made_fail_the_pass) {
  for (const auto& send : {second, message_id{3, here}}) {
    participant node({first, second});
    auto all = whole_weight();
    node.returned(burst_of(node.start(split(all))));
    auto pruned = node.prune({first}, split(all));
    BOOST_TEST((one<run_burst>(pruned)->drops == std::vector<message_id>{second}));
    node.returned(burst_of(std::move(pruned)));
    auto late = node.gradients(send, split(all), {});
    BOOST_TEST(one<report_failure>(late) != nullptr);
    BOOST_TEST(node.over());
  }
}

// PA-3
BOOST_AUTO_TEST_CASE(an_abort_that_is_asked_twice_is_answered_each_time) {
  participant node({first}, nullptr, true);
  auto all = whole_weight();
  auto share = burst_of(node.start(split(all)));
  auto asked = node.abort();
  BOOST_TEST(one<answer_abort>(asked) == nullptr);
  BOOST_TEST(one<participant::stop_burst>(asked) != nullptr);
  auto back = node.returned(std::move(share));
  BOOST_TEST(one<answer_abort>(back) != nullptr);
  auto again = node.abort();
  BOOST_TEST(one<answer_abort>(again) != nullptr);
  BOOST_TEST(one<participant::end>(again) == nullptr);  // the node that started the pass stays
}

// PA-3, PA-7
BOOST_AUTO_TEST_CASE(a_part_that_is_aborted_or_closed_ends_when_its_burst_is_back) {
  for (const bool closes : {false, true}) {
    participant node({first});
    auto share = burst_of(node.gradients(first, whole_weight(), {node_id{2}}));
    share.give(node_id{3}, true);
    auto asked = closes ? node.close(false) : node.abort();
    BOOST_TEST(one<participant::end>(asked) == nullptr);
    const auto* told = one<participant::tell_senders>(asked);
    BOOST_TEST((told != nullptr) == closes);
    if (closes) BOOST_TEST((told->who == std::set<node_id>{{2}}));
    auto back = node.returned(std::move(share));
    BOOST_TEST(one<participant::end>(back) != nullptr);
    if (closes) BOOST_TEST(back.size() == 1u);
    if (!closes) BOOST_TEST((one<answer_abort>(back)->sent_to == std::vector<node_id>{{3}}));
  }
}

BOOST_AUTO_TEST_CASE(a_node_that_goes_down_fails_the_pass_where_gradients_were_sent_to_it) {
  const node_id other{3};
  for (const bool sends : {false, true}) {
    participant node({first, second});
    auto all = whole_weight();
    auto share = burst_of(node.gradients(first, split(all), {}));
    if (sends) share.give(other, true);
    BOOST_TEST(node.peer_down(other, "it died").empty());  // the burst is away
    auto back = node.returned(std::move(share));
    BOOST_TEST((one<report_failure>(back) != nullptr) == sends);
    BOOST_TEST(node.over() == sends);
    BOOST_TEST(node.peer_down(other, "it died").empty());
  }
}

BOOST_AUTO_TEST_CASE(gradients_of_leaves_are_handed_out_when_the_burst_is_back_and_none_of_a_part_that_is_closed) {
  participant node({first}, nullptr, true);
  auto share = burst_of(node.start(whole_weight()));
  BOOST_TEST(node.gather().empty());
  auto back = node.returned(std::move(share));
  BOOST_TEST(one<participant::hand_out>(back) != nullptr);
  auto again = node.gather();
  BOOST_TEST(one<participant::hand_out>(again) != nullptr);
  node.close(true);
  auto late = node.gather();
  BOOST_TEST(one<participant::hand_out>(late) == nullptr);
}

// Effects that come later may begin a burst at once, which takes the gradients of the leaves along.
BOOST_AUTO_TEST_CASE(gradients_of_leaves_are_handed_out_before_anything_new_begins) {
  participant node({first}, nullptr, true);
  auto share = burst_of(node.start(whole_weight()));
  BOOST_TEST(node.walk_roots().empty());
  auto walk = node.returned(std::move(share));
  BOOST_TEST(one<participant::run_walk>(walk) != nullptr);
  BOOST_TEST(node.gather().empty());
  const auto back = node.walked({});
  BOOST_TEST(std::holds_alternative<participant::hand_out>(back.front()));
  BOOST_TEST(back.size() > 1u);
}

BOOST_AUTO_TEST_CASE(the_part_of_the_initiator_lives_until_it_is_closed_also_if_it_is_aborted_before_it_starts) {
  for (const bool leads : {false, true}) {
    participant node({first}, nullptr, leads);
    auto aborted = node.abort();
    BOOST_TEST(one<answer_abort>(aborted) != nullptr);
    BOOST_TEST((one<participant::end>(aborted) == nullptr) == leads);
    auto closed = node.close(true);
    BOOST_TEST(one<participant::end>(closed) != nullptr);
  }
}

// PA-5, PA-7: each question gets an answer, and a question that comes during a walk waits for the next one.
BOOST_AUTO_TEST_CASE(walks_wait_for_a_burst_and_answer_the_questions_that_came_before) {
  participant node({first, second});
  auto share = burst_of(node.gradients(first, whole_weight(), {}));
  BOOST_TEST(node.discover({first}).empty());
  BOOST_TEST(node.discover({second}).empty());
  auto back = node.returned(std::move(share));
  BOOST_REQUIRE(one<participant::run_walk>(back) != nullptr);
  BOOST_TEST((one<participant::run_walk>(back)->sends == std::vector<message_id>{first, second}));
  BOOST_TEST(node.discover({second}).empty());
  auto walked = node.walked({message_id{7, node_id{4}}});
  BOOST_REQUIRE(one<participant::answer_discover>(walked) != nullptr);
  BOOST_TEST(one<participant::answer_discover>(walked)->questions == 2u);
  BOOST_TEST(one<participant::answer_discover>(walked)->recvs.size() == 1u);
  BOOST_TEST((one<participant::run_walk>(walked)->sends == std::vector<message_id>{second}));
}

// PA-4, PA-6, BS-1, BS-2
BOOST_AUTO_TEST_CASE(a_node_answers_its_parent_with_its_last_message_and_waits_for_its_children) {
  const node_id parent{2};
  const node_id child{3};
  participant node({first, second}, std::make_shared<call_tree_position>(call_tree_position{parent, {child}}));
  auto all = whole_weight();
  auto down = burst_of(node.gradients(first, split(all), {parent}));
  BOOST_TEST(down.answers == 1U);
  const auto to_child = down.give(child, false);
  BOOST_TEST(is_empty(down.carried));
  BOOST_TEST(node.returned(std::move(down)).empty());  // waits for the child

  auto returned = to_child.carried;
  auto rest = split(returned);
  BOOST_TEST(node.reported(std::move(rest), {child}).empty());  // the child is not done
  auto up = burst_of(node.gradients(second, std::move(returned), {child, 1}));
  BOOST_TEST(up.settles);
  const auto to_parent = up.give(parent, false);
  BOOST_TEST(to_parent.answers == 1U);
  BOOST_TEST(to_parent.carried.begun == 1U);
  BOOST_TEST(to_parent.carried.settled == 1U);
  BOOST_TEST(node.returned(std::move(up)).empty());
  BOOST_TEST(node.settled());
  merge(all, to_parent.carried);
  BOOST_TEST(is_whole(all));
}

// PA-6: the weight has gone to another node, and the parent still needs an answer.
BOOST_AUTO_TEST_CASE(a_node_without_weight_answers_its_parent_when_its_child_is_done) {
  const node_id parent{2};
  const node_id child{3};
  participant node({first}, std::make_shared<call_tree_position>(call_tree_position{parent, {child}}));
  auto down = burst_of(node.gradients(first, whole_weight(), {parent}));
  down.give(child, false);
  node.returned(std::move(down));
  auto done = node.reported({}, {child, 1});
  const auto* quiet = one<report_quiet>(done);
  BOOST_REQUIRE(quiet != nullptr);
  BOOST_TEST(is_empty(quiet->carried));
  BOOST_TEST(quiet->to_parent);
  BOOST_TEST(quiet->answers == 1U);
  BOOST_TEST(node.reported({}, {child, 1}).empty());  // once is enough
}

// PA-6: the answer of a child may overtake the end of the burst that sent the gradients.
BOOST_AUTO_TEST_CASE(an_answer_that_comes_before_the_burst_is_back_counts) {
  const node_id child{3};
  participant node({first, second}, std::make_shared<call_tree_position>(call_tree_position{node_id{}, {child}}));
  auto down = burst_of(node.gradients(first, whole_weight(), {node_id{7}}));
  auto to_child = down.give(child, true);
  node.reported(std::move(to_child.carried), {child, 1});
  auto back = node.returned(std::move(down));
  const auto* quiet = one<report_quiet>(back);
  BOOST_REQUIRE(quiet != nullptr);
  BOOST_TEST(!quiet->to_parent);  // this node has none
  BOOST_TEST(is_whole(quiet->carried));
  BOOST_TEST(quiet->carried.settled == 0U);  // `second` waits
}

// PA-6: what others than children claim to answer has no effect.
BOOST_AUTO_TEST_CASE(a_node_waits_only_for_answers_of_its_children) {
  const node_id child{3};
  participant node({first}, std::make_shared<call_tree_position>(call_tree_position{node_id{}, {child}}));
  auto down = burst_of(node.gradients(first, whole_weight(), {node_id{7}}));
  down.give(child, true);
  BOOST_TEST(node.returned(std::move(down)).empty());
  BOOST_TEST(node.reported({}, {node_id{7}, 9}).empty());
  BOOST_TEST(!node.reported({}, {child, 9}).empty());
}

BOOST_AUTO_TEST_SUITE_END()
