// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "apps/charlm/text.hpp"
#include "apps/charlm/vocabulary.hpp"

namespace troupe::apps::charlm {

/// Inputs and what comes one character later, both [windows, context] of int64.
struct batch {
  at::Tensor inputs;
  at::Tensor targets;
};

/// A text cut into blocks of 2,000 characters: every tenth is for validation (of a long text 24 of them, evenly spaced), the
/// rest for training.
///   CX-1  no training window touches a validation block.
///   CX-2  the batch of a step depends on the seed and the step alone, so that a run can continue from any step.
///   CX-3  a text that has no validation block or no training window throws std::runtime_error, naming what it needs.
class corpus {
 public:
  static constexpr std::size_t block_length = 2000;
  static constexpr std::size_t blocks_a_turn = 10;  // the last of each ten is for validation

  static constexpr std::size_t most_validation_blocks = 24;

  corpus(const text& from, const vocabulary& words, std::int64_t context);

  /// `windows` windows of `context` characters at random places of the training text.
  batch training_batch(std::uint64_t seed, std::int64_t step, std::int64_t windows) const;

  const std::vector<std::vector<std::int64_t>>& training() const noexcept { return training_; }
  const std::vector<std::vector<std::int64_t>>& validation() const noexcept { return validation_; }

  /// Windows over the validation blocks that predict each character but a block's first two (as a trigram model does) exactly
  /// once; of a window that overlaps the one before only the new part counts. Targets that do not count are -1.
  batch validation_windows() const;

 private:
  std::int64_t context_;
  std::vector<std::vector<std::int64_t>> training_;    // stretches without a gap
  std::vector<std::vector<std::int64_t>> validation_;  // blocks
  std::vector<std::int64_t> first_place_;              // of each training stretch's windows, in one numbering of all windows
  std::int64_t places_ = 0;
};

}  // namespace troupe::apps::charlm
