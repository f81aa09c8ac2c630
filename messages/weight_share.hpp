// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

/// A share of the weight of a pass. Each message of the pass carries a share, for termination detection by weight throwing
/// (Mattern; Huang). `weight` is a list of exponents e, and stands for the sum of 2^-e. A pass starts with weight 1. Weight is
/// only split and merged, never made, so no message and no burst of the pass is left when the initiator has weight 1 again.
/// `begun`: how many nodes have begun the pass. `settled`: how many nodes have no waiting send left. Each node counts itself
/// once in each number, so the sums over all shares of a pass are the numbers of the whole pass.
struct weight_share {
  std::vector<std::uint32_t> weight;
  std::uint64_t begun = 0;
  std::uint64_t settled = 0;

  bool operator==(const weight_share&) const = default;
};

}  // namespace troupe
