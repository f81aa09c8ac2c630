// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "../engine/engine_rows.hpp"

namespace troupe::bench {

/// The rows of lanes on the simulated accelerator, in the order of the table. `quick`: the graphs are small.
std::vector<row_definition> devices_rows(bool quick);

}  // namespace troupe::bench
