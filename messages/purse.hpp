// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <troupe/messages/ids.hpp>

namespace troupe {

/// What travels with every gradient of a pass, so that its initiator knows when nothing is under way any more.
/// `weight` is a sum of 2^-e over its exponents: a pass starts with 1 and weight is only split and merged, never made.
/// `begun` and `settled` name nodes that have begun the pass, and those that have no send left waiting.
struct purse {
  std::vector<std::uint32_t> weight;
  std::vector<node_id> begun;
  std::vector<node_id> settled;

  bool operator==(const purse&) const = default;
};

}  // namespace troupe
