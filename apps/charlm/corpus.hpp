// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
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
///   CX-4  a corpus takes hardly more memory than its text: tokens are made of the characters that are asked for.
class corpus {
 public:
  static constexpr std::size_t block_length = 2000;
  static constexpr std::size_t blocks_a_turn = 10;  // the last block of each ten is for validation

  static constexpr std::size_t most_validation_blocks = 24;

  /// Characters of the text that follow each other.
  struct stretch {
    std::size_t begin;
    std::size_t size;
  };

  corpus(text from, vocabulary words, std::int64_t context);

  std::size_t size() const noexcept { return size_; }

  /// `windows` windows of `context` characters, from random positions of the training text.
  batch training_batch(std::uint64_t seed, std::int64_t step, std::int64_t windows) const;

  const std::vector<stretch>& training() const noexcept { return training_; }
  const std::vector<stretch>& validation() const noexcept { return validation_; }
  std::vector<std::int64_t> tokens(stretch of) const;

  /// Windows over the validation blocks. Each character of a block but the first two (as for a trigram model) is predicted
  /// exactly once. Where a window overlaps the window before it, only the new part counts. Targets that do not count are -1.
  batch validation_windows() const;

 private:
  text text_;
  vocabulary words_;
  std::int64_t context_;
  std::size_t size_ = 0;
  std::vector<std::size_t> block_starts_;  // where in the bytes of the text each block begins
  std::vector<stretch> training_;          // consecutive blocks
  std::vector<stretch> validation_;        // blocks
  std::vector<std::int64_t> first_start_;  // by stretch: number of its first window, counted over all stretches
  std::int64_t starts_ = 0;
};

}  // namespace troupe::apps::charlm
