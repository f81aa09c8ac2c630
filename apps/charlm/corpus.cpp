// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/corpus.hpp"

#include <algorithm>
#include <stdexcept>

#include <ATen/ATen.h>

namespace troupe::apps::charlm {

namespace {

/// One step of SplitMix64: a well mixed number for each counter.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

corpus::corpus(const text& from, const vocabulary& words, std::int64_t context) : context_(context) {
  const auto smallest = block_length * (blocks_a_turn - 1) + static_cast<std::size_t>(context) + 1;
  if (from.characters.size() < smallest)
    throw std::runtime_error("expected a text of at least " + std::to_string(smallest) + " characters in " + from.origin +
                             " (nine blocks of 2,000 to train on and one to validate on), but it has " +
                             std::to_string(from.characters.size()) + "; name a longer one with --data FILE");
  const auto tokens = words.encode(from.characters);
  const auto turn = block_length * blocks_a_turn;
  for (std::size_t begin = 0; begin < tokens.size(); begin += turn) {
    const auto cut = std::min(begin + turn - block_length, tokens.size());
    const auto end = std::min(begin + turn, tokens.size());
    training_.emplace_back(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                           tokens.begin() + static_cast<std::ptrdiff_t>(cut));
    if (end > cut + 2)
      validation_.emplace_back(tokens.begin() + static_cast<std::ptrdiff_t>(cut),
                               tokens.begin() + static_cast<std::ptrdiff_t>(end));
  }
  if (const auto blocks = validation_.size(); blocks > most_validation_blocks) {
    std::vector<std::vector<std::int64_t>> kept;
    for (std::size_t i = 0; i < most_validation_blocks; ++i)
      kept.push_back(std::move(validation_[blocks * i / most_validation_blocks]));
    validation_ = std::move(kept);
  }
  for (const auto& stretch : training_) {
    first_start_.push_back(starts_);
    starts_ += std::max<std::int64_t>(0, static_cast<std::int64_t>(stretch.size()) - context_);
  }
  if (starts_ == 0)
    throw std::runtime_error("expected a training text longer than the context of " + std::to_string(context_) +
                             " characters; give a smaller --context");
}

batch corpus::training_batch(std::uint64_t seed, std::int64_t step, std::int64_t windows) const {
  auto inputs = at::empty({windows, context_}, at::kLong);
  auto targets = at::empty({windows, context_}, at::kLong);
  const auto of_step = mix(mix(seed) ^ static_cast<std::uint64_t>(step));
  for (std::int64_t w = 0; w < windows; ++w) {
    const auto start =
      static_cast<std::int64_t>(mix(of_step + static_cast<std::uint64_t>(w)) % static_cast<std::uint64_t>(starts_));
    const auto after = std::upper_bound(first_start_.begin(), first_start_.end(), start);
    const auto stretch = static_cast<std::size_t>(after - first_start_.begin()) - 1;
    const auto* from = training_[stretch].data() + (start - first_start_[stretch]);
    std::copy_n(from, context_, inputs.data_ptr<std::int64_t>() + w * context_);
    std::copy_n(from + 1, context_, targets.data_ptr<std::int64_t>() + w * context_);
  }
  return {inputs, targets};
}

batch corpus::validation_windows() const {
  std::vector<std::int64_t> inputs;
  std::vector<std::int64_t> targets;
  for (const auto& block : validation_) {
    const auto predicted = static_cast<std::int64_t>(block.size()) - 1;
    for (std::int64_t done = 0; done < predicted; done += context_) {
      const auto begin = std::max<std::int64_t>(0, std::min(done, predicted - context_));
      for (std::int64_t i = begin; i < begin + context_; ++i) {
        inputs.push_back(i < predicted ? block[static_cast<std::size_t>(i)] : 0);
        targets.push_back(i >= std::max<std::int64_t>(done, 1) && i < predicted ? block[static_cast<std::size_t>(i) + 1] : -1);
      }
    }
  }
  const auto windows = static_cast<std::int64_t>(inputs.size()) / context_;
  const auto shape = {windows, context_};
  return {at::tensor(inputs, at::kLong).view(shape), at::tensor(targets, at::kLong).view(shape)};
}

}  // namespace troupe::apps::charlm
