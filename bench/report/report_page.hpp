// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "results.hpp"

namespace troupe::bench {

/// A page of HTML that needs nothing else, neither files nor a network: the machine, one table of ratios, and the plots of each group.
std::string page_of(const results_of_folder& found);

}  // namespace troupe::bench
