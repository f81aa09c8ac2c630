// SPDX-License-Identifier: BSD-3-Clause
// Checks with which failure a pass ends, and when the pass ends. The model of whole passes (pass_model.hpp) checks neither.
#include <boost/test/unit_test.hpp>

#include <troupe/engine/protocol/initiator.hpp>
#include <troupe/engine/protocol/weight_throwing.hpp>

using namespace troupe;
using namespace troupe::protocol;

namespace {

const node_id a{1};
const node_id b{2};
const node_id c{3};

/// All effects of this kind.
template <class Effect>
std::vector<Effect> all_of(const initiator::effects& effects) {
  std::vector<Effect> result;
  for (const auto& each : effects)
    if (const auto* found = std::get_if<Effect>(&each)) result.push_back(*found);
  return result;
}

bool completes(const initiator::effects& effects) { return !all_of<initiator::complete>(effects).empty(); }

std::vector<node_id> aborted_by(const initiator::effects& effects) {
  std::vector<node_id> result;
  for (const auto& each : all_of<initiator::ask_abort>(effects)) result.push_back(each.who);
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(initiators)

// IN-2, IN-5
BOOST_AUTO_TEST_CASE(the_first_failure_wins_and_the_pass_ends_when_all_that_were_asked_have_answered) {
  initiator lead(a, {a, b});
  const auto steps = lead.failed(b, errc::function_failed, "no luck");
  BOOST_TEST((aborted_by(steps) == std::vector<node_id>{a, b}));
  BOOST_TEST(all_of<initiator::await_aborts>(steps).size() == 1U);
  BOOST_TEST(!completes(steps));
  for (const auto& later :
       {lead.failed(a, errc::deadline_passed, "too late"), lead.quiet(whole_weight()), lead.aborted(a, {c}, true)})
    BOOST_TEST(!completes(later));
  BOOST_TEST(lead.aborting());
  BOOST_TEST(!completes(lead.aborted(b, {}, true)));  // c, to which a had sent, has yet to answer
  BOOST_TEST(completes(lead.peer_down(c, "it died")));
  BOOST_REQUIRE(lead.result().has_value());
  BOOST_TEST((lead.result()->code == errc::function_failed));
  BOOST_TEST(lead.result()->text == "no luck");
}

// IN-1
BOOST_AUTO_TEST_CASE(nothing_changes_the_end_of_a_pass_once_it_is_complete) {
  initiator lead(a, {a});
  auto all = whole_weight();
  all.begun = all.settled = 1;
  BOOST_TEST(completes(lead.quiet(std::move(all))));
  for (const auto& later :
       {lead.failed(a, errc::function_failed, "late"), lead.peer_down(a, "late"), lead.deadline_passed("late"),
        lead.aborted(a, {}, true), lead.found(a, {}, true), lead.quiet(whole_weight())})
    BOOST_TEST(later.empty());
  BOOST_TEST(!lead.result().has_value());
}

// IN-2
BOOST_AUTO_TEST_CASE(aborts_that_nobody_answers_end_the_pass_at_their_deadline) {
  initiator lead(a, {a, b});
  lead.failed(b, errc::function_failed, "no luck");
  BOOST_TEST(completes(lead.deadline_passed("later")));
  BOOST_TEST(!completes(lead.deadline_passed("later")));
  BOOST_TEST(lead.result()->text == "no luck");
}

// IN-4
BOOST_AUTO_TEST_CASE(fast_mode_finds_those_whose_sends_wait_and_prunes_nothing) {
  initiator lead(a, {a, b}, false);
  auto all = whole_weight();
  all.begun = 2;
  all.settled = 1;
  BOOST_TEST(all_of<initiator::walk_roots>(lead.quiet(std::move(all))).size() == 1U);
  const auto asked = all_of<initiator::ask_discover>(lead.found(a, {{1, b}}, true));
  BOOST_REQUIRE(asked.size() == 1U);
  BOOST_TEST((asked[0].who == b));
  BOOST_TEST((asked[0].sends == std::vector<message_id>{{1, b}}));
  const auto steps = lead.found(b, {}, false);
  BOOST_REQUIRE(steps.size() == 1U);
  BOOST_TEST((std::get<initiator::name_unused>(steps[0]).nodes == std::vector<node_id>{b}));
}

// IN-3: only nodes that say that they are not settled get weight to go on with.
BOOST_AUTO_TEST_CASE(a_discovery_prunes_on_those_nodes_that_are_not_settled) {
  initiator lead(a, {a});
  auto all = whole_weight();
  all.begun = 3;
  all.settled = 1;
  lead.quiet(std::move(all));
  lead.found(a, {{1, b}, {2, c}}, false);
  lead.found(b, {}, true);
  BOOST_TEST(all_of<initiator::send_prune>(lead.found(c, {{3, c}}, false)).empty());
  const auto prunes = all_of<initiator::send_prune>(lead.found(c, {}, false));
  BOOST_REQUIRE(prunes.size() == 2U);
  BOOST_TEST((prunes[0].who == a && prunes[1].who == c));
  BOOST_TEST(prunes[0].live.empty());
  BOOST_TEST((prunes[1].live == std::vector<message_id>{{2, c}, {3, c}}));
  auto sum = prunes[0].carried;
  merge(sum, prunes[1].carried);
  BOOST_TEST(is_whole(sum));
}

// Only a node that lies about its count leads here.
BOOST_AUTO_TEST_CASE(counts_that_no_node_explains_fail_the_pass) {
  initiator lead(a, {a});
  auto all = whole_weight();
  all.begun = 2;
  all.settled = 1;
  lead.quiet(std::move(all));
  BOOST_TEST((aborted_by(lead.found(a, {}, true)) == std::vector<node_id>{a}));
  BOOST_TEST((lead.result()->code == errc::pass_aborted));
}

// The nodes of a pass that ran out of time: who has not said that it was done, and who has not answered at all.
BOOST_AUTO_TEST_CASE(an_aborted_pass_knows_who_was_not_done_with_it) {
  initiator lead(a, {a, b});
  lead.deadline_passed("too late");
  lead.aborted(a, {c}, true);
  lead.aborted(b, {}, false);
  const auto end = all_of<initiator::complete>(lead.deadline_passed("later"));
  BOOST_REQUIRE(end.size() == 1U);
  BOOST_TEST((end[0].not_done == std::vector<node_id>{b, c}));
}

BOOST_AUTO_TEST_SUITE_END()
