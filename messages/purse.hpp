// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <troupe/messages/ids.hpp>

namespace troupe {

/// A part of the weight of a pass. Each message of the pass carries a part, for termination detection by weight throwing
/// (Mattern; Huang). `weight` is the sum of 2^-e over its exponents. A pass starts with weight 1. Weight is only split and
/// merged, never made, so no message and no burst of the pass is left when the initiator has weight 1 again.
/// `begun`: nodes that have begun the pass. `settled`: nodes that have no waiting send left.
struct purse {
  std::vector<std::uint32_t> weight;
  std::vector<node_id> begun;
  std::vector<node_id> settled;

  bool operator==(const purse&) const = default;
};

}  // namespace troupe
