// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/bench/support/report_test.cpp
#pragma once

#include <vector>

namespace troupe::bench {

/// The range in which the middle half of the runs lies (or of the turns, if the figure of a turn is a best or a median of runs).
/// Both ends 0: not known.
struct value_range {
  double low = 0;
  double high = 0;

  bool known() const { return low != 0 || high != 0; }
  /// Half of the range by `figure`, which the range belongs to; 0 if the range is not known.
  double relative_to(double figure) const;
};

/// From the lower to the upper quartile of `runs`, widened so that `figure`, which stands for them, is inside. Not known for fewer than
/// two runs.
value_range spread_of(std::vector<double> runs, double figure);

/// The value below which `share` (0 to 1) of the values are. Pre: there is a value.
double percentile(std::vector<double> values, double share);

}  // namespace troupe::bench
