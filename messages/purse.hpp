// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

/// A part of the weight of a pass. Each message of the pass carries a part, for termination detection by weight throwing
/// (Mattern; Huang). `weight` is the sum of 2^-e over its exponents. A pass starts with weight 1. Weight is only split and
/// merged, never made, so no message and no burst of the pass is left when the initiator has weight 1 again.
/// `begun`: how many nodes have begun the pass. `settled`: how many nodes have no waiting send left. Each node counts itself
/// once in each number, so the numbers in all purses of a pass add up to those of the pass.
struct purse {
  std::vector<std::uint32_t> weight;
  std::uint64_t begun = 0;
  std::uint64_t settled = 0;

  bool operator==(const purse&) const = default;
};

}  // namespace troupe
