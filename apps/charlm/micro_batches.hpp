// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include "apps/charlm/corpus.hpp"

namespace troupe::apps::charlm {

/// A part of a batch, and its share of the batch's mean loss.
struct micro_batch {
  batch windows;
  double share = 1;
};

/// How many windows each of `count` micro-batches gets: as equal as can be, for a stage waits as long as the largest one takes
/// another. Throws std::runtime_error when there are fewer windows than parts.
std::vector<std::int64_t> micro_batch_sizes(std::int64_t windows, std::int64_t count);

/// How a batch is cut: windows in each micro-batch, one list for each context that takes some of them.
using batch_cuts = std::vector<std::vector<std::int64_t>>;

/// The sizes, shared out to at most `contexts` contexts as equally as can be, in order.
batch_cuts share_out(const std::vector<std::int64_t>& sizes, std::int64_t contexts);

/// The batch in parts of those sizes, in order, by context.
std::vector<std::vector<micro_batch>> cut(const batch& whole, const batch_cuts& sizes);

}  // namespace troupe::apps::charlm
