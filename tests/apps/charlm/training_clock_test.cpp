// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/progress.hpp"

#include <boost/test/unit_test.hpp>

using namespace std::chrono_literals;

namespace {

/// A clock that a test sets.
struct set_clock {
  using duration = std::chrono::milliseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<set_clock>;
  static inline time_point at{};
  static time_point now() { return at; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_training_lasts_from_its_start_with_what_came_before_and_without_what_is_left_out) {  // CT-1
  troupe::apps::charlm::training_clock<set_clock> clock;
  clock.start(10);
  set_clock::at += 4s;
  BOOST_TEST(clock.seconds() == 14.0);
  set_clock::at += 2s;
  clock.leave_out(2s);
  BOOST_TEST(clock.seconds() == 14.0);
}

BOOST_AUTO_TEST_CASE(the_time_of_a_step_is_the_mean_of_the_steps_that_were_noted) {  // CT-2
  troupe::apps::charlm::training_clock<set_clock> clock;
  BOOST_TEST(clock.seconds_per_step() == 0.0);
  clock.note_step(1);
  clock.note_step(3);
  BOOST_TEST(clock.seconds_per_step() == 2.0);
}
