// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/messages/weight_share.hpp>

/// Termination detection by weight throwing (Mattern; Huang). A pass starts with weight 1, and every message of the pass
/// carries a share of the weight. When the initiator has the whole weight again, no message and no burst of the pass is left.
///   WG-1  split and merge keep the sum: the share that is given away and the share that stays add up to the former weight.
///   WG-2  a share without weight counts no nodes. Counts travel with weight, so the whole weight counts all nodes.
///   WG-3  the time of each function grows hardly faster than the number of exponents, because another node may send long
///         weights.
namespace troupe::protocol {

/// Returns the weight with which a pass starts: 1.
weight_share whole_weight();

/// True if the weight is 1.
bool is_whole(const weight_share& from) noexcept;

/// True if the share has no weight.
inline bool is_empty(const weight_share& from) noexcept { return from.weight.empty(); }

/// True if as many nodes are settled as have begun. Of the whole weight: all nodes that have begun are settled.
inline bool all_settled(const weight_share& from) noexcept { return from.begun == from.settled; }

/// Adds `other` to `into`.
void merge(weight_share& into, weight_share other);

/// Gives away shares of one weight, one after another. The nth share is about 1 / (2 n^2) of the weight, and all shares
/// together are less than the weight. If each share were a half of the rest, exponents would grow with n.
///   WG-4  the exponents of n shares, and of the rest, are at most 1 + 2 log2(n) above the lowest exponent of the weight. So a
///         sum of many shares is short, whichever nodes the shares come from.
class splitter {
 public:
  /// Gives away the next share. `from` has to be the same weight in each call and must not be empty. `from` keeps the rest and
  /// the counts.
  weight_share split(weight_share& from);

 private:
  std::uint64_t given_ = 0;
  std::uint32_t lowest_ = 0;
};

/// Gives away one share of the weight.
inline weight_share split(weight_share& from) { return splitter().split(from); }

/// Empties `from` and returns all that it held.
weight_share take(weight_share& from);

}  // namespace troupe::protocol
