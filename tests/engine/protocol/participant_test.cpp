// SPDX-License-Identifier: BSD-3-Clause
// Messages that troupe's own nodes never send in this way, but that may still come.
#include <boost/test/unit_test.hpp>

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
  BOOST_TEST(part.gradients(first, split(all)).start_burst);
  part.burst_ended(part.take_burst().carried);
  const auto again = part.gradients(first, split(all));
  BOOST_REQUIRE(again.failure.has_value());
  BOOST_TEST(again.failure->find("arrived twice") != std::string::npos, *again.failure);
  BOOST_TEST(!again.start_burst);
  BOOST_TEST(part.over());
  BOOST_TEST(!part.gradients(second, split(all)).start_burst);
}

// PA-2
BOOST_AUTO_TEST_CASE(gradients_for_a_send_that_was_pruned_or_never_made_fail_the_pass) {
  for (const auto& send : {second, message_id{3, here}}) {
    participant part(here, {first, second});
    auto all = whole_purse();
    part.start(split(all));
    part.burst_ended(part.take_burst().carried);
    BOOST_TEST((part.prune({first}, split(all)).drop == std::vector<message_id>{second}));
    part.burst_ended(part.take_burst().carried);
    BOOST_TEST(part.gradients(send, split(all)).failure.has_value());
    BOOST_TEST(part.over());
  }
}

// PA-3
BOOST_AUTO_TEST_CASE(an_abort_that_is_asked_twice_is_answered_each_time) {
  participant part(here, {first});
  auto all = whole_purse();
  part.start(split(all));
  BOOST_TEST(!part.abort().answer_abort);
  BOOST_TEST(part.burst_ended(part.take_burst().carried).answer_abort);
  BOOST_TEST(part.abort().answer_abort);
}

BOOST_AUTO_TEST_SUITE_END()
