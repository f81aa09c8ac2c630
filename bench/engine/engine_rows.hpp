// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../support/stopwatch.hpp"

namespace troupe::bench {

/// What a row compares: libtorch's value with troupe's, or troupe's value with that of another row.
enum class comparison { peer_over_troupe, troupe_over_peer, troupe_over_other };

/// A row of the engine's table before it is measured.
struct row_definition {
  std::string name;
  std::string unit;
  double per_second;  // one second per pass, in this unit, for this graph
  comparison compare = comparison::peer_over_troupe;
  double bar = 0;
  std::string other;               // used with troupe_over_other
  std::function<workload()> make;  // builds the graph; throws if the gradients of the two engines differ
  bool memory = false;             // measure KiB at the peak of a pass instead of time
};

/// All rows, in the order of the table. `quick`: the largest graphs are small.
std::vector<row_definition> engine_rows(bool quick);

}  // namespace troupe::bench
