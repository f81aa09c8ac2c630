// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/neighbours.hpp>

#include <algorithm>
#include <array>
#include <limits>

namespace troupe::membership {

namespace {

/// The position of the node in the circle with the number `ring`.
std::uint64_t position(node_id who, std::uint64_t ring) noexcept { return spread(who.value + spread(ring + 1)); }

}  // namespace

std::uint64_t spread(std::uint64_t x) noexcept {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

std::vector<node_id> neighbours_of(node_id who, std::vector<node_id> others, std::size_t most_in_mesh, std::uint64_t rings) {
  if (others.size() <= most_in_mesh) return others;
  std::vector<node_id> result;
  for (std::uint64_t ring = 0; ring < rings; ++ring) {
    const auto here = position(who, ring);
    std::array<std::uint64_t, 2> shortest{std::numeric_limits<std::uint64_t>::max(), std::numeric_limits<std::uint64_t>::max()};
    std::array<node_id, 2> nearest;  // the next node, and the node before
    for (const auto id : others) {
      const auto there = position(id, ring);
      const std::array ways{there - here, here - there};  // around the circle, in either direction
      for (std::size_t i = 0; i < 2; ++i)
        if (ways[i] <= shortest[i]) {
          shortest[i] = ways[i];
          nearest[i] = id;
        }
    }
    result.insert(result.end(), nearest.begin(), nearest.end());
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

}  // namespace troupe::membership
