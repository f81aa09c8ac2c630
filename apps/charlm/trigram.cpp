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
  // Only what validation asks for is counted: a long text has many different triples.
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

}  // namespace troupe::apps::charlm
