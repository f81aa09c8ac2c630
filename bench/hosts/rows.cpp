// SPDX-License-Identifier: BSD-3-Clause
#include "rows.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace troupe::bench {

std::vector<hosts_row> hosts_rows() {
  std::vector<hosts_row> all;
  for (const auto& rows : {link_rows(), member_rows(), simulated_rows(), training_rows(), chaos_rows()})
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
  return text;
}

double middle(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace troupe::bench
