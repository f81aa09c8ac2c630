// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "apps/charlm/text.hpp"
#include "apps/charlm/vocabulary.hpp"

namespace troupe::apps::charlm {

/// Inputs, and the characters that follow them as targets; both [windows, context] of int64.
struct batch {
  at::Tensor inputs;
  at::Tensor targets;
};

/// A text cut into blocks of 2,000 characters. Of each ten blocks, nine are for training and the last one is for validation
/// (of a long text only 24 validation blocks are used, evenly spaced).
///   CX-1  no training window touches a validation block.
///   CX-2  the batch of a step depends on the seed and the step alone, so a run can continue from any step.
///   CX-3  a text without a validation block or without a training window throws std::runtime_error, which names what is
///         missing.
class corpus {
 public:
  static constexpr std::size_t block_length = 2000;
  static constexpr std::size_t blocks_a_turn = 10;  // the last block of each ten is for validation

  static constexpr std::size_t most_validation_blocks = 24;

  corpus(const text& from, const vocabulary& words, std::int64_t context);

  /// `windows` windows of `context` characters, from random positions of the training text.
  batch training_batch(std::uint64_t seed, std::int64_t step, std::int64_t windows) const;

  const std::vector<std::vector<std::int64_t>>& training() const noexcept { return training_; }
  const std::vector<std::vector<std::int64_t>>& validation() const noexcept { return validation_; }

  /// Windows over the validation blocks. Each character of a block but the first two (as for a trigram model) is predicted
  /// exactly once. Where a window overlaps the window before it, only the new part counts. Targets that do not count are -1.
  batch validation_windows() const;

 private:
  std::int64_t context_;
  std::vector<std::vector<std::int64_t>> training_;    // stretches of consecutive blocks
  std::vector<std::vector<std::int64_t>> validation_;  // blocks
  std::vector<std::int64_t> first_start_;              // by stretch: number of its first window, counted over all stretches
  std::int64_t starts_ = 0;
};

}  // namespace troupe::apps::charlm
