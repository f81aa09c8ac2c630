// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/messages/purse.hpp>

/// Termination detection by weight throwing (Mattern; Huang). A pass starts with weight 1, and every message of the pass
/// carries a part of the weight. When the initiator has the whole weight again, no message and no burst of the pass is left.
///   PU-1  split and merge keep the sum: the part that is given away and the part that stays add up to the former weight.
///   PU-2  a purse without weight counts no nodes. Counts travel with weight, so a whole purse counts all nodes.
///   PU-3  the time of each function grows hardly faster than the number of exponents, because another node may send long
///         weights.
namespace troupe::protocol {

/// Returns the purse with which a pass starts: weight 1.
purse whole_purse();

/// True if the purse holds the weight 1.
bool is_whole(const purse& from) noexcept;

/// True if the purse holds no weight.
inline bool is_empty(const purse& from) noexcept { return from.weight.empty(); }

/// True if as many nodes are settled as have begun. Of a whole purse: all nodes that have begun are settled.
inline bool all_settled(const purse& from) noexcept { return from.begun == from.settled; }

/// Adds `other` to `into`.
void merge(purse& into, purse other);

/// Gives away parts of the weight of one purse, one after another. The nth part is about 1 / (2 n^2) of the purse, and all
/// parts together are less than the purse. If each part were a half, exponents would grow with n.
///   PU-4  the exponents of n parts, and of the rest, are at most 1 + 2 log2(n) above the lowest exponent of the purse. So a
///         purse of many parts is short, whichever nodes the parts come from.
class splitter {
 public:
  /// Gives away the next part. `from` has to be the same purse in each call and must have weight. The purse keeps the rest and
  /// the counts.
  purse split(purse& from);

 private:
  std::uint64_t given_ = 0;
  std::uint32_t lowest_ = 0;
};

/// Gives away one part of the weight.
inline purse split(purse& from) { return splitter().split(from); }

/// Empties the purse and returns all that it held.
purse take(purse& from);

}  // namespace troupe::protocol
