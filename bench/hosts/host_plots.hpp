// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../support/curves.hpp"
#include "rows.hpp"

namespace troupe::bench {

/// A plot of hosts_bench. `measure` throws std::exception if it can't be measured.
struct hosts_plot {
  std::string name;
  std::function<plot(const hosts_effort&)> measure{};
};

/// All plots, in the order of the page.
std::vector<hosts_plot> hosts_plots();

}  // namespace troupe::bench
