// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/late_answers.hpp"

#include <boost/test/unit_test.hpp>

namespace {

using torchtroupe::late_answers;

const troupe::error stopping(troupe::errc::stopping, "the worker has shut down");

bool is_stopping(const late_answers::future& call) {
  try {
    static_cast<void>(call.get());
    return false;
  } catch (const troupe::error& why) {
    return why.code() == troupe::errc::stopping;
  }
}

}  // namespace

// LA-1: a function may return its future while the worker ends.
BOOST_AUTO_TEST_CASE(a_call_that_comes_after_the_end_is_answered_at_once) {
  late_answers all;
  late_answers::future early;
  const auto first = all.add(early);
  all.close(stopping);
  late_answers::future late;
  const auto second = all.add(late);
  BOOST_TEST_REQUIRE((early.ready() && late.ready()));
  BOOST_TEST((is_stopping(early) && is_stopping(late)));
  for (const auto number : {first, second}) all.answer(number, {});
  BOOST_TEST(is_stopping(late));
  BOOST_TEST(all.size() == 0u);
}
