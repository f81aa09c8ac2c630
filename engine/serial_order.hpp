// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <troupe/engine/plan.hpp>

namespace troupe::engine {

/// The vertices that execute, in the order of a serial pass that has every source at its start. Takes no notice of what has
/// run.
std::vector<std::uint32_t> serial_order(const plan& graph);

}  // namespace troupe::engine
