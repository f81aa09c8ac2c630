// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/trigram.hpp"

#include <cmath>
#include <unordered_map>

namespace troupe::apps::charlm {

double trigram_loss(const corpus& of, std::int64_t vocabulary_size, double added) {
  std::unordered_map<std::int64_t, std::int64_t> pairs;
  std::unordered_map<std::int64_t, std::int64_t> triples;
  const auto pair_at = [&](const std::vector<std::int64_t>& t, std::size_t i) { return t[i - 2] * vocabulary_size + t[i - 1]; };
  const auto triple_at = [&](const std::vector<std::int64_t>& t, std::size_t i) {
    return pair_at(t, i) * vocabulary_size + t[i];
  };
  for (const auto& stretch : of.training())
    for (std::size_t i = 2; i < stretch.size(); ++i) {
      ++pairs[pair_at(stretch, i)];
      ++triples[triple_at(stretch, i)];
    }
  const auto count = [](const auto& table, std::int64_t key) {
    const auto at = table.find(key);
    return at == table.end() ? 0.0 : static_cast<double>(at->second);
  };
  double sum = 0;
  std::int64_t characters = 0;
  for (const auto& block : of.validation())
    for (std::size_t i = 2; i < block.size(); ++i, ++characters)
      sum -= std::log((count(triples, triple_at(block, i)) + added) /
                      (count(pairs, pair_at(block, i)) + added * static_cast<double>(vocabulary_size)));
  return characters == 0 ? 0 : sum / static_cast<double>(characters);
}

}  // namespace troupe::apps::charlm
