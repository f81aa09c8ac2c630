// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/charlm/corpus_test.cpp, tests/apps/charlm/trigram_test.cpp, tests/apps/charlm/micro_batches_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "apps/charlm/text.hpp"

namespace troupe::apps::charlm {

/// Input windows and their targets, both [windows, context] of int64. The target of an input character is the character that
/// follows it in the text, which the model has to predict.
struct batch {
  at::Tensor inputs;
  at::Tensor targets;
};

/// A text that is cut into blocks of 2,000 characters. Of each ten blocks, nine are for training and the last one is for
/// validation. Of a long text, only 24 validation blocks are used, evenly spaced.
///   CX-1  no training window touches a validation block.
///   CX-2  the batch of a step depends on the seed and the step alone, so a run can continue from any step.
///   CX-3  a text without a validation block or without a training window throws std::runtime_error, which names what is
///         missing.
///   CX-4  a corpus takes hardly more memory than its text, because only characters that are asked for are turned into tokens.
class corpus {
 public:
  static constexpr std::size_t block_length = 2000;
  static constexpr std::size_t blocks_a_turn = 10;  // the last block of each ten is for validation

  static constexpr std::size_t most_validation_blocks = 24;

  /// A range of consecutive characters of the text.
  struct stretch {
    std::size_t begin;
    std::size_t size;
  };

  corpus(text from, vocabulary words, std::int64_t context);

  std::size_t size() const noexcept { return size_; }

  /// Returns `windows` windows of `context` characters, from random positions of the training text.
  batch training_batch(std::uint64_t seed, std::int64_t step, std::int64_t windows) const;

  const std::vector<stretch>& training() const noexcept { return training_; }
  const std::vector<stretch>& validation() const noexcept { return validation_; }
  std::vector<std::int64_t> tokens(stretch of) const;

  /// Returns windows that cover the validation blocks. Each character of a block, except the first two, is a target exactly
  /// once. The first two are left out because a trigram model can't predict them. Targets that do not count are -1, as where a
  /// window overlaps the window before it.
  batch validation_windows() const;

 private:
  text text_;
  vocabulary words_;
  std::int64_t context_;
  std::size_t size_ = 0;
  std::vector<std::size_t> block_starts_;  // the byte of the text at which each block begins
  std::vector<stretch> training_;          // nine consecutive blocks each; the last one may be shorter
  std::vector<stretch> validation_;        // one block each
  std::vector<std::int64_t> first_start_;  // by training stretch: how many windows begin in the stretches before it
  std::int64_t starts_ = 0;
};

/// Trains a trigram model on the training text: counts which character follows each pair of characters. Returns the model's
/// mean loss on the validation blocks, in nats per character, without the first two characters of each block. `added` is added
/// to each count.
double trigram_loss(const corpus& of, std::int64_t vocabulary_size, double added = 0.1);

/// A part of a batch, and its share of the batch's mean loss.
struct micro_batch {
  batch windows;
  double share = 1;
};

/// Returns the number of windows of each of `count` micro-batches. The numbers differ by one at most, because a stage waits for
/// the largest micro-batch. Throws std::runtime_error if there are fewer windows than micro-batches.
std::vector<std::int64_t> micro_batch_sizes(std::int64_t windows, std::int64_t count);

/// Cuts the batch, in order, into micro-batches of these sizes.
std::vector<micro_batch> cut(const batch& whole, const std::vector<std::int64_t>& sizes);

}  // namespace troupe::apps::charlm
