// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/messages/purse.hpp>

/// Termination detection by weight throwing (Mattern; Huang). A pass starts with weight 1, and every message of the pass
/// carries a part of the weight. When the initiator has the whole weight again, no message and no burst of the pass is left.
///   PU-1  split and merge keep the sum: the part that is given away and the part that stays add up to the former weight.
///   PU-2  a purse without weight names no nodes. Names travel with weight, so a whole purse has all names.
///   PU-3  the time of each function grows with the length of the lists, and hardly faster: another node may send long ones.
namespace troupe::protocol {

/// The purse that a pass starts with: weight 1.
purse whole_purse();

/// True if the purse holds the weight 1.
bool is_whole(const purse& from) noexcept;

/// True if the purse holds no weight.
inline bool is_empty(const purse& from) noexcept { return from.weight.empty(); }

/// True if all nodes that have begun are settled.
bool all_settled(const purse& from);

/// Adds `other` to `into`. Each name is kept once.
void merge(purse& into, purse other);

/// Gives away a part of the weight. `from` keeps the rest and the names. `from` must have weight.
purse split(purse& from);

/// Gives away everything.
purse take(purse& from);

}  // namespace troupe::protocol
