// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/answers_under_way.hpp>

#include <boost/test/unit_test.hpp>

#include <optional>

namespace {

using troupe::node_id;
using troupe::calls::answers_under_way;

constexpr node_id asker{2};
constexpr node_id second_asker{3};

}  // namespace

BOOST_AUTO_TEST_SUITE(bytes_of_answers)

BOOST_AUTO_TEST_CASE(a_caller_has_credit_below_the_limit) {  // AU-1
  answers_under_way all(100);
  all.add(asker, 99);
  BOOST_TEST(all.has_credit(asker));
  all.add(asker, 50);
  BOOST_TEST(!all.has_credit(asker));
  BOOST_TEST(all.has_credit(second_asker));
  BOOST_TEST((all.left(asker, 149) == std::optional<std::uint64_t>(149)));
  BOOST_TEST(!all.has_credit(asker));
  all.taken(asker, 149);
  BOOST_TEST(all.has_credit(asker));
  BOOST_TEST(all.bytes(asker) == 0U);
}

BOOST_AUTO_TEST_CASE(small_answers_share_a_question) {  // AU-2
  answers_under_way all(100);
  BOOST_TEST(all.step() == 25U);
  all.add(asker, 24);
  BOOST_TEST(!all.left(asker, 24));
  all.add(asker, 1);
  BOOST_TEST((all.left(asker, 1) == std::optional<std::uint64_t>(25)));
  all.add(asker, 10);
  BOOST_TEST(!all.left(asker, 10));
  all.taken(asker, 25);
  BOOST_TEST(all.bytes(asker) == 10U);
  BOOST_TEST(answers_under_way(1).step() == 1U);
  BOOST_TEST(answers_under_way(std::uint64_t{1} << 40).step() == std::uint64_t{256} << 10);
}

BOOST_AUTO_TEST_CASE(a_caller_that_went_down_begins_anew) {
  answers_under_way all(100);
  all.add(asker, 200);
  all.forget(asker);
  BOOST_TEST(all.has_credit(asker));
  BOOST_TEST(!all.left(asker, 200));
  all.add(asker, 10);
  all.taken(asker, 200);  // of the time before
  BOOST_TEST(all.bytes(asker) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
