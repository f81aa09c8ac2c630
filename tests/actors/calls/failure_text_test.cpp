// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/failure_text.hpp>

#include <boost/test/unit_test.hpp>

#include <string>

using troupe::calls::failure_text;
using troupe::calls::most_calls_told;

namespace {

/// The text of an error that came through so many calls: f1 calls f2, and so on.
std::string through(std::size_t calls, std::string reason) {
  for (auto i = calls; i > 0; --i) reason = failure_text("f" + std::to_string(i), "n" + std::to_string(i), reason);
  return reason;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(failure_texts)

BOOST_AUTO_TEST_CASE(a_few_calls_are_all_named) {  // FT-1
  BOOST_TEST(through(1, "no luck") == "call of 'f1' on node 'n1' failed: no luck");
  BOOST_TEST(through(2, "no luck") == "call of 'f1' on node 'n1' failed: call of 'f2' on node 'n2' failed: no luck");
  const auto longest = through(most_calls_told, "no luck");
  for (std::size_t i = 1; i <= most_calls_told; ++i) BOOST_TEST(longest.find("'f" + std::to_string(i) + "'") != longest.npos);
}

BOOST_AUTO_TEST_CASE(of_many_calls_the_outermost_and_the_innermost_are_named) {  // FT-1
  BOOST_TEST(through(600, "no luck") ==
             "call of 'f1' on node 'n1' failed: through 598 more: call of 'f600' on node 'n600' failed: no luck");
  BOOST_TEST(through(most_calls_told + 1, "no luck") ==
             "call of 'f1' on node 'n1' failed: through 7 more: call of 'f9' on node 'n9' failed: no luck");
}

BOOST_AUTO_TEST_CASE(calls_of_nodes_that_do_not_count_are_counted) {  // FT-1
  std::string text = through(600, "no luck");
  for (int i = 0; i < 3; ++i) text = "call of 'old' on node 'o' failed: " + text;
  BOOST_TEST(failure_text("f", "n", text) ==
             "call of 'f' on node 'n' failed: through 602 more: call of 'f600' on node 'n600' failed: no luck");
}

BOOST_AUTO_TEST_CASE(a_reason_that_looks_like_a_text_of_this_kind_stays_whole) {  // FT-1
  for (const auto* reason :
       {"", "call of ", "call of 'x", "call of 'x' failed: through more: y", "call of 'x' failed: through 7"})
    BOOST_TEST(through(1, reason) == std::string("call of 'f1' on node 'n1' failed: ") + reason);
  BOOST_TEST(through(1, "call of 'x' failed: through 99999999999999999999 more: y") ==
             "call of 'f1' on node 'n1' failed: call of 'x' failed: through 99999999999999999999 more: y");
}

BOOST_AUTO_TEST_SUITE_END()
