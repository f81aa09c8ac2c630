// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "../support/bench_program.hpp"

namespace troupe::bench::savina {

/// Plots of programs whose actors are spread over 2 to 8 processes.
std::vector<plot_definition> plots_over_processes();

}  // namespace troupe::bench::savina
