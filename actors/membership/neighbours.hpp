// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/membership/roster_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <troupe/messages/ids.hpp>

namespace troupe::membership {

/// Spreads the bits of a number (the finaliser of MurmurHash3, by Austin Appleby).
std::uint64_t spread(std::uint64_t x) noexcept;

/// The neighbours of a node among the `others`, ascending (RT-4 of roster). `others`: ascending.
std::vector<node_id> neighbours_of(node_id who, std::vector<node_id> others, std::size_t most_in_mesh, std::uint64_t rings);

}  // namespace troupe::membership
