// SPDX-License-Identifier: BSD-3-Clause
#include "runs.hpp"

#include <algorithm>
#include <cstddef>

namespace troupe::bench {

namespace {

/// The value of sorted runs below which `share` of them lie; between two runs it is interpolated.
double quantile(const std::vector<double>& sorted, double share) {
  const double rank = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

value_range spread_of(std::vector<double> runs, double figure) {
  if (runs.size() < 2) return {};
  std::sort(runs.begin(), runs.end());
  return {std::min(figure, quantile(runs, 0.25)), std::max(figure, quantile(runs, 0.75))};
}

double percentile(std::vector<double> values, double share) {
  const auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank), values.end());
  return values[rank];
}

double middle(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace troupe::bench
