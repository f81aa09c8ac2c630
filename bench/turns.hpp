// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "distributed_rows.hpp"

namespace troupe::bench {

/// Seconds of the runs of each row.
using times = std::vector<std::vector<double>>;

/// Who has a turn. Its processes exist during its turn alone: PyTorch's poll, and would take their time from the others.
enum class side { torch, troupe, floor };

/// One turn: `share` of each row's runs, at least two, in new processes. Rows that the side does not have stay empty; `alone`
/// rows come as {peer, troupe, ratio}. `folder` is for files of this turn. Call it while this process has one thread.
/// Throws std::runtime_error when one of the processes fails, which has then said why.
times take_turn(side who, const std::vector<definition>& rows, double share, bool quick, const std::filesystem::path& folder);

}  // namespace troupe::bench
