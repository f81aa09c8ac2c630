// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/late_calls.hpp>

#include <boost/test/unit_test.hpp>

#include <memory>
#include <vector>

BOOST_AUTO_TEST_SUITE(lines_of_late_calls)

using namespace troupe;
using calls::late_calls;
using contracts::outgoing_call;
using contracts::outgoing_call_ptr;

namespace {

constexpr object_id none;
constexpr object_id one{node_id{1}, 1};
constexpr object_id other{node_id{1}, 2};

struct made_calls {
  ~made_calls() {
    for (const auto& call : all) call->ended = true;
  }
  outgoing_call_ptr operator()(object_id target, bool late) {
    all.push_back(std::make_shared<outgoing_call>());
    all.back()->request.target = target;
    all.back()->late = late;
    return all.back();
  }
  std::vector<outgoing_call_ptr> all;
};

using calls = std::vector<outgoing_call_ptr>;

}  // namespace

// LC-1
BOOST_AUTO_TEST_CASE(calls_on_one_object_wait_behind_a_late_one_and_no_others_do) {
  made_calls make;
  late_calls line;
  const auto first = make(one, true);
  const auto second = make(one, false);
  const auto third = make(one, true);
  BOOST_TEST(line.hold(first));
  BOOST_TEST(line.hold(second));
  BOOST_TEST(line.hold(third));
  for (const auto& target : {other, none}) BOOST_TEST(!line.hold(make(target, false)));
  BOOST_TEST((line.arrived(third) == calls{}));  // the tensors of `third` are ready before those of `first`
  BOOST_TEST((line.arrived(first) == calls{first, second, third}));
  BOOST_TEST(!line.hold(make(one, false)));
}

// LC-1
BOOST_AUTO_TEST_CASE(a_call_on_no_object_waits_for_its_own_tensors_alone) {
  made_calls make;
  late_calls line;
  const auto first = make(none, true);
  const auto second = make(none, true);
  BOOST_TEST(line.hold(first));
  BOOST_TEST(line.hold(second));
  BOOST_TEST((line.arrived(second) == calls{second}));
  BOOST_TEST((line.arrived(first) == calls{first}));
}

// LC-3: the tensors are there before the other node has been met.
BOOST_AUTO_TEST_CASE(a_call_whose_tensors_come_before_it_is_held_leaves_once) {
  made_calls make;
  late_calls line;
  for (const auto& target : {none, one}) {
    const auto call = make(target, true);
    BOOST_TEST((line.arrived(call) == calls{}));
    BOOST_TEST(!line.hold(call));
  }
  const auto ended = make(none, true);
  BOOST_TEST(line.hold(ended));
  BOOST_TEST((line.ended(*ended) == calls{}));
  BOOST_TEST((line.arrived(ended) == calls{}));
}

// LC-2
BOOST_AUTO_TEST_CASE(a_call_that_ended_holds_up_none) {
  made_calls make;
  late_calls line;
  const auto first = make(one, true);
  const auto second = make(one, false);
  const auto third = make(one, true);
  for (const auto& call : {first, second, third}) line.hold(call);
  first->ended = true;
  BOOST_TEST((line.ended(*first) == calls{second}));
  third->ended = true;
  BOOST_TEST((line.ended(*third) == calls{}));
  BOOST_TEST(!line.hold(make(one, false)));
  BOOST_TEST((line.arrived(first) == calls{}));
}

BOOST_AUTO_TEST_SUITE_END()
