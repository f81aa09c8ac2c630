// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/progress.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <sstream>

using namespace troupe::apps::charlm;

BOOST_AUTO_TEST_SUITE(progress_of_a_run)

namespace {

const progress_report half{
  .step = 120, .fraction = 0.5, .loss = 2.1304, .validation_loss = 2.01, .tokens_per_second = 24512.4, .seconds_left = 64.2};

}  // namespace

BOOST_AUTO_TEST_CASE(a_line_has_step_loss_speed_and_time_left) {
  BOOST_TEST(progress::line_of(half, 0, false) == "step 120  loss 2.130  validation 2.010  24,512 tokens/s  1:05 left");
}

BOOST_AUTO_TEST_CASE(a_terminals_line_never_wraps) {  // PR-1
  for (std::size_t columns = 20; columns < 160; ++columns) BOOST_TEST(progress::line_of(half, columns, true).size() < columns);
  BOOST_TEST(progress::line_of(half, 120, true).find("50% [####") == 0u);
}

BOOST_AUTO_TEST_CASE(a_message_on_a_terminal_stands_above_the_line) {  // PR-1
  std::ostringstream out;
  progress shown{out, true, 100};
  shown.report(half);
  shown.message("saved");
  const auto line = progress::line_of(half, 100, true);
  BOOST_TEST(out.str() == "\r" + line + "\x1b[K" + "\rsaved\x1b[K\n" + line);
}

BOOST_AUTO_TEST_CASE(elsewhere_lines_are_plain_and_rare) {  // PR-2
  std::ostringstream out;
  progress shown{out, false, 80, std::chrono::hours{1}};
  for (int i = 0; i < 100; ++i) shown.report(half);
  shown.message("saved");
  shown.finish();
  BOOST_TEST(out.str() == progress::line_of(half, 0, false) + "\nsaved\n");
}

BOOST_AUTO_TEST_SUITE_END()
