// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <vector>

namespace troupe::bench {

/// Runs that are not counted before `runs` that are.
constexpr int warm_up_of(int runs) { return runs < 1'000 ? runs / 5 + 2 : 200; }

/// The microseconds since `begin`.
inline double microseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

/// The megabits per second.
inline double megabits(double bytes, double seconds) { return bytes * 8 / 1e6 / seconds; }

/// Runs `run` again and again, `warm_up_of(runs)` times before it counts, and returns the microseconds of each run that counts.
template <class Run>
std::vector<double> times_of(int runs, Run run) {
  std::vector<double> taken;
  for (int i = -warm_up_of(runs); i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    if (i >= 0) taken.push_back(microseconds_since(begin));
  }
  return taken;
}

}  // namespace troupe::bench
