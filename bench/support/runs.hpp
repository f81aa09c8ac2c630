// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/bench/support/report_test.cpp
#pragma once

#include <chrono>
#include <vector>

namespace troupe::bench {

/// The range in which the middle half of the runs lies (or of the turns, if the figure of a turn is a best or a median of runs).
/// Both ends 0: not known.
struct value_range {
  double low = 0;
  double high = 0;

  bool known() const { return low != 0 || high != 0; }
};

/// From the lower to the upper quartile of `runs`, widened so that `figure`, which stands for them, is inside. Not known for fewer than
/// two runs.
value_range spread_of(std::vector<double> runs, double figure);

/// The value below which `share` (0 to 1) of the values are. Pre: there is a value.
double percentile(std::vector<double> values, double share);

/// The middle one of the values. Pre: there is a value.
double middle(std::vector<double> values);

/// Runs that are not counted before `runs` that are.
constexpr int warm_up_of(int runs) { return runs < 1'000 ? runs / 5 + 2 : 200; }

/// The microseconds since `begin`.
inline double microseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

/// The megabits per second.
inline double megabits(double bytes, double seconds) { return bytes * 8 / 1e6 / seconds; }

/// The seconds since `begin`.
inline double seconds_since(std::chrono::steady_clock::time_point begin) { return microseconds_since(begin) / 1e6; }

/// Runs `run` again and again, `warm_up_of(runs)` times before it counts. Returns what each run that counts returns.
template <class Run>
std::vector<double> told_times(int runs, Run run) {
  std::vector<double> taken;
  for (int i = -warm_up_of(runs); i < runs; ++i)
    if (const double time = run(); i >= 0) taken.push_back(time);
  return taken;
}

/// The same, with the microseconds of each run.
template <class Run>
std::vector<double> times_of(int runs, Run run) {
  return told_times(runs, [&] {
    const auto begin = std::chrono::steady_clock::now();
    run();
    return microseconds_since(begin);
  });
}

}  // namespace troupe::bench
