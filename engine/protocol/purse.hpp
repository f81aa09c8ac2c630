// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/messages/purse.hpp>

/// Weights that tell a pass's initiator when nothing is under way.
///   PU-1  split and merge keep the sum: what is given and what stays add up to what was there.
///   PU-2  a purse without weight names no nodes: names travel with weight, so a whole purse holds all of them.
namespace troupe::protocol {

/// The purse that a pass starts with: weight 1.
purse whole_purse();

/// True if the purse holds the weight 1.
bool is_whole(const purse& from) noexcept;

/// True if the purse holds no weight.
inline bool is_empty(const purse& from) noexcept { return from.weight.empty(); }

/// True if all that have begun are settled.
bool all_settled(const purse& from);

/// Adds `other` to `into`; names are kept once.
void merge(purse& into, purse other);

/// Gives away a part of the weight and keeps the rest and the names. `from` must hold weight.
purse split(purse& from);

/// Gives away everything.
purse take(purse& from);

}  // namespace troupe::protocol
