// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <troupe/messages/ids.hpp>

namespace troupe {

/// The weight of a pass that travels with each of its messages: termination detection by weight throwing (Mattern; Huang).
/// `weight` is the sum of 2^-e over its exponents. A pass starts with weight 1. Weight is only split and merged, never made,
/// so nothing of the pass is under way when the initiator has weight 1 again.
/// `begun`: nodes that have begun the pass. `settled`: nodes that have no waiting send left.
struct purse {
  std::vector<std::uint32_t> weight;
  std::vector<node_id> begun;
  std::vector<node_id> settled;

  bool operator==(const purse&) const = default;
};

}  // namespace troupe
