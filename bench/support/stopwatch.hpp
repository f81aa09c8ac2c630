// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <functional>
#include <string>

namespace troupe::bench {

/// The three runners of the same work: libtorch's engine, troupe's engine, and a loop that knows the order beforehand.
enum class runner { peer, troupe, floor };
inline constexpr std::array runners{runner::peer, runner::troupe, runner::floor};

/// One value for each runner.
struct results {
  double peer = 0;
  double troupe = 0;
  double floor = 0;  // 0 if there is no floor

  double& operator[](runner of) { return of == runner::peer ? peer : of == runner::troupe ? troupe : floor; }
};

/// What is measured. `run` is timed. `before` is called before each run, `enter` before each series of one runner.
struct workload {
  std::function<void(runner)> run;
  std::function<void()> before;
  std::function<void(runner)> enter;
  bool has_floor = false;
};

/// How long to measure.
struct effort {
  double series_seconds = 0.02;  // of one series, which belongs to one runner
  int fewest_rounds = 4;
  double most_seconds = 3;  // for all rounds together

  static effort quick() { return {0, 1, 0}; }
};

/// The seconds per run in the best series. The runners take turns in series of equal length, through Google Benchmark, until
/// the three best series of each runner agree within 2%, or the time is over.
results measure(const std::string& name, const workload& work, const effort& spend);

}  // namespace troupe::bench
