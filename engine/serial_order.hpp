// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <troupe/engine/plan.hpp>

namespace troupe::engine {

/// The vertices that execute, in serial order: the order of a pass on one thread that has all sources at its start. Which
/// functions have already run makes no difference.
std::vector<std::uint32_t> serial_order(const plan& graph);

}  // namespace troupe::engine
