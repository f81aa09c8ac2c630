// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/corpus.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <ATen/ATen.h>

namespace troupe::apps::charlm {

namespace {

/// One step of SplitMix64: turns a counter into a pseudorandom number.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

corpus::corpus(text from, vocabulary words, std::int64_t context)
    : text_(std::move(from)), words_(std::move(words)), context_(context) {
  for (std::size_t at = 0; at < text_.bytes.size(); ++at)
    if (begins_character(text_.bytes[at]) && size_++ % block_length == 0) block_starts_.push_back(at);
  const auto smallest = block_length * (blocks_a_turn - 1) + static_cast<std::size_t>(context) + 1;
  if (size_ < smallest)
    throw std::runtime_error("expected a text of at least " + std::to_string(smallest) + " characters in " + text_.origin +
                             " (nine blocks of 2,000 to train on and one to validate on), but it has " + std::to_string(size_) +
                             "; name a longer one with --data FILE");
  const auto turn = block_length * blocks_a_turn;
  for (std::size_t begin = 0; begin < size_; begin += turn) {
    const auto cut = std::min(begin + turn - block_length, size_);
    const auto end = std::min(begin + turn, size_);
    training_.push_back({begin, cut - begin});
    if (end > cut + 2) validation_.push_back({cut, end - cut});
  }
  if (const auto blocks = validation_.size(); blocks > most_validation_blocks) {
    std::vector<stretch> kept;
    for (std::size_t i = 0; i < most_validation_blocks; ++i) kept.push_back(validation_[blocks * i / most_validation_blocks]);
    validation_ = std::move(kept);
  }
  for (const auto& each : training_) {
    first_start_.push_back(starts_);
    starts_ += std::max<std::int64_t>(0, static_cast<std::int64_t>(each.size) - context_);
  }
  if (starts_ == 0)
    throw std::runtime_error("expected a training text longer than the context of " + std::to_string(context_) +
                             " characters; give a smaller --context");
}

std::vector<std::int64_t> corpus::tokens(stretch of) const {
  const auto& bytes = text_.bytes;
  const auto skip = [&](std::size_t at,
                        std::size_t characters) {  // returns the byte that is `characters` characters after `at`
    for (; characters > 0; --characters)
      for (++at; at < bytes.size() && !begins_character(bytes[at]); ++at) {
      }
    return at;
  };
  const auto begin = skip(block_starts_[of.begin / block_length], of.begin % block_length);
  return words_.encode(from_utf8(std::string_view(bytes).substr(begin, skip(begin, of.size) - begin)));
}

batch corpus::training_batch(std::uint64_t seed, std::int64_t step, std::int64_t windows) const {
  auto inputs = at::empty({windows, context_}, at::kLong);
  auto targets = at::empty({windows, context_}, at::kLong);
  const auto of_step = mix(mix(seed) ^ static_cast<std::uint64_t>(step));
  for (std::int64_t w = 0; w < windows; ++w) {
    const auto start =
      static_cast<std::int64_t>(mix(of_step + static_cast<std::uint64_t>(w)) % static_cast<std::uint64_t>(starts_));
    const auto after = std::upper_bound(first_start_.begin(), first_start_.end(), start);
    const auto which = static_cast<std::size_t>(after - first_start_.begin()) - 1;
    const auto first = training_[which].begin + static_cast<std::size_t>(start - first_start_[which]);
    const auto window = tokens({first, static_cast<std::size_t>(context_) + 1});
    std::copy_n(window.begin(), context_, inputs.data_ptr<std::int64_t>() + w * context_);
    std::copy_n(window.begin() + 1, context_, targets.data_ptr<std::int64_t>() + w * context_);
  }
  return {inputs, targets};
}

batch corpus::validation_windows() const {
  std::vector<std::int64_t> inputs;
  std::vector<std::int64_t> targets;
  for (const auto& each : validation_) {
    const auto block = tokens(each);
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

double trigram_loss(const corpus& of, std::int64_t vocabulary_size, double added) {
  std::unordered_map<std::int64_t, std::int64_t> pairs;
  std::unordered_map<std::int64_t, std::int64_t> triples;
  const auto pair_at = [&](const std::vector<std::int64_t>& t, std::size_t i) { return t[i - 2] * vocabulary_size + t[i - 1]; };
  const auto triple_at = [&](const std::vector<std::int64_t>& t, std::size_t i) {
    return pair_at(t, i) * vocabulary_size + t[i];
  };
  // Counts only pairs and triples that occur in the validation blocks, because a long text has many different triples.
  for (const auto& block : of.validation()) {
    const auto t = of.tokens(block);
    for (std::size_t i = 2; i < t.size(); ++i) {
      pairs[pair_at(t, i)] = 0;
      triples[triple_at(t, i)] = 0;
    }
  }
  const auto count = [](auto& table, std::int64_t key) {
    if (const auto at = table.find(key); at != table.end()) ++at->second;
  };
  for (const auto& stretch : of.training()) {
    const auto t = of.tokens(stretch);
    for (std::size_t i = 2; i < t.size(); ++i) {
      count(pairs, pair_at(t, i));
      count(triples, triple_at(t, i));
    }
  }
  double sum = 0;
  std::int64_t characters = 0;
  for (const auto& block : of.validation()) {
    const auto t = of.tokens(block);
    for (std::size_t i = 2; i < t.size(); ++i, ++characters)
      sum -= std::log((static_cast<double>(triples[triple_at(t, i)]) + added) /
                      (static_cast<double>(pairs[pair_at(t, i)]) + added * static_cast<double>(vocabulary_size)));
  }
  return characters == 0 ? 0 : sum / static_cast<double>(characters);
}

std::vector<std::int64_t> micro_batch_sizes(std::int64_t windows, std::int64_t count) {
  if (count < 1 || windows < count)
    throw std::runtime_error("expected 1 to " + std::to_string(windows) + " micro-batches for a batch of " +
                             std::to_string(windows) + ", but --micro-batches is " + std::to_string(count));
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count), windows / count);
  for (std::int64_t i = 0; i < windows % count; ++i) ++sizes[static_cast<std::size_t>(i)];
  return sizes;
}

std::vector<micro_batch> cut(const batch& whole, const std::vector<std::int64_t>& sizes) {
  const auto all = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  std::vector<micro_batch> micro_batches;
  std::int64_t at = 0;
  for (const auto size : sizes) {
    const batch windows{whole.inputs.narrow(0, at, size), whole.targets.narrow(0, at, size)};
    micro_batches.push_back({windows, static_cast<double>(size) / static_cast<double>(all)});
    at += size;
  }
  return micro_batches;
}

}  // namespace troupe::apps::charlm
