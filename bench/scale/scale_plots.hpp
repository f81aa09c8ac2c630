// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "../support/curves.hpp"
#include "scale_figures.hpp"

namespace troupe::bench {

/// Curves over the count of nodes: time, messages at the busiest node and purse of a pass by shape, and what membership costs. Plots of what
/// was not simulated are left out.
std::vector<plot> plots_of(const scale_figures& from);

}  // namespace troupe::bench
