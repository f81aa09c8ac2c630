// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/vocabulary.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "apps/charlm/text.hpp"

namespace troupe::apps::charlm {

vocabulary vocabulary::of(const std::u32string& text) {
  auto characters = text;
  std::sort(characters.begin(), characters.end());
  characters.erase(std::unique(characters.begin(), characters.end()), characters.end());
  return vocabulary{std::move(characters)};
}

vocabulary::vocabulary(std::u32string characters) : characters_(std::move(characters)) {
  if (characters_.empty() ||
      std::adjacent_find(characters_.begin(), characters_.end(), std::greater_equal<>{}) != characters_.end())
    throw std::runtime_error("a vocabulary's characters are expected to be ascending and different, and at least one");
}

std::vector<std::int64_t> vocabulary::encode(const std::u32string& text) const {
  std::vector<std::int64_t> tokens;
  tokens.reserve(text.size());
  for (const auto c : text) {
    const auto at = std::lower_bound(characters_.begin(), characters_.end(), c);
    if (at == characters_.end() || *at != c) {
      char code[16];
      std::snprintf(code, sizeof code, "U+%04X", static_cast<unsigned>(c));
      throw std::runtime_error("the character '" + to_utf8(std::u32string(1, c)) + "' (" + code + ", at " +
                               std::to_string(tokens.size()) + ") is not among the " + std::to_string(size()) +
                               " that the model was trained on; leave it out");
    }
    tokens.push_back(at - characters_.begin());
  }
  return tokens;
}

std::u32string vocabulary::decode(const std::vector<std::int64_t>& tokens) const {
  std::u32string text;
  text.reserve(tokens.size());
  for (const auto t : tokens) text.push_back(characters_.at(static_cast<std::size_t>(t)));
  return text;
}

}  // namespace troupe::apps::charlm
