// SPDX-License-Identifier: BSD-3-Clause
// Checks with which failure a pass ends, and when the pass ends. The model of whole passes (pass_model.hpp) checks neither.
#include <boost/test/unit_test.hpp>

#include <troupe/engine/protocol/initiator.hpp>
#include <troupe/engine/protocol/purse.hpp>

using namespace troupe;
using namespace troupe::protocol;

namespace {

const node_id a{1};
const node_id b{2};
const node_id c{3};

}  // namespace

BOOST_AUTO_TEST_SUITE(initiators)

// IN-2
BOOST_AUTO_TEST_CASE(the_first_failure_wins_and_the_pass_ends_when_all_that_were_asked_have_answered) {
  initiator lead(a, {a, b});
  const auto steps = lead.failed(b, errc::function_failed, "no luck");
  BOOST_TEST((steps.abort == std::vector<node_id>{a, b}));
  BOOST_TEST(!steps.complete);
  for (const auto& later : {lead.failed(a, errc::deadline_passed, "too late"), lead.quiet(whole_purse()), lead.aborted(a, {c})})
    BOOST_TEST(!later.complete);
  BOOST_TEST(lead.aborting());
  BOOST_TEST(!lead.aborted(b, {}).complete);  // c, to which a had sent, has yet to answer
  BOOST_TEST(lead.peer_down(c, "it died").complete);
  BOOST_REQUIRE(lead.result().has_value());
  BOOST_TEST((lead.result()->code == errc::function_failed));
  BOOST_TEST(lead.result()->text == "no luck");
}

// IN-1
BOOST_AUTO_TEST_CASE(nothing_changes_the_end_of_a_pass_once_it_is_complete) {
  initiator lead(a, {a});
  auto all = whole_purse();
  all.begun = all.settled = {a};
  BOOST_TEST(lead.quiet(std::move(all)).complete);
  for (const auto& later : {lead.failed(a, errc::function_failed, "late"), lead.peer_down(a, "late"), lead.abort_timeout(),
                            lead.aborted(a, {}), lead.found({}), lead.quiet(whole_purse())}) {
    BOOST_TEST(!later.complete);
    BOOST_TEST(later.abort.empty());
  }
  BOOST_TEST(!lead.result().has_value());
}

// IN-2
BOOST_AUTO_TEST_CASE(aborts_that_nobody_answers_end_the_pass_at_their_deadline) {
  initiator lead(a, {a, b});
  lead.failed(b, errc::function_failed, "no luck");
  BOOST_TEST(lead.abort_timeout().complete);
  BOOST_TEST(!lead.abort_timeout().complete);
  BOOST_TEST(lead.result()->text == "no luck");
}

// IN-4
BOOST_AUTO_TEST_CASE(fast_mode_names_those_whose_sends_wait_and_asks_nobody) {
  initiator lead(a, {a, b}, false);
  auto all = whole_purse();
  all.begun = {a, b};
  all.settled = {a};
  const auto steps = lead.quiet(std::move(all));
  BOOST_TEST((steps.unused == std::vector<node_id>{b}));
  BOOST_TEST(!steps.walk_roots);
  BOOST_TEST(!steps.complete);
}

BOOST_AUTO_TEST_SUITE_END()
