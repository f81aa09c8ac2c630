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

/// The number of windows of each of `count` micro-batches. The numbers differ as little as possible, because a stage waits for
/// the largest micro-batch. Throws std::runtime_error if there are fewer windows than micro-batches.
std::vector<std::int64_t> micro_batch_sizes(std::int64_t windows, std::int64_t count);

/// How a batch is cut: one list per context, with the number of windows in each of its micro-batches.
using batch_cuts = std::vector<std::vector<std::int64_t>>;

/// Deals the sizes, in order, to at most `contexts` contexts, as equally as possible.
batch_cuts share_out(const std::vector<std::int64_t>& sizes, std::int64_t contexts);

/// Cuts the batch into micro-batches of these sizes, in order, by context.
std::vector<std::vector<micro_batch>> cut(const batch& whole, const batch_cuts& sizes);

}  // namespace troupe::apps::charlm
