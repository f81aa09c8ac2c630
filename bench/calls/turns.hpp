// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <vector>

#include "distributed_rows.hpp"

namespace troupe::bench {

/// For each row, the seconds of its runs.
using times = std::vector<std::vector<double>>;

/// The sides that take turns. The processes of a side exist only during its turn, because PyTorch's processes poll and would
/// take time from the other sides.
enum class side { torch, troupe, floor };

/// Runs one turn: `share` of each row's runs, but at least two, in new processes. Rows that the side does not have stay empty.
/// A row with `alone` gets the values {peer, troupe, ratio}. `folder` is for files of this turn. To be called while this
/// process has one thread. Throws std::runtime_error if one of the processes fails; that process has then printed the reason.
times take_turn(side who, const std::vector<definition>& rows, double share, bool quick, const std::filesystem::path& folder);

}  // namespace troupe::bench
