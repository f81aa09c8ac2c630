// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/vocabulary.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "apps/charlm/text.hpp"

namespace troupe::apps::charlm {

vocabulary vocabulary::of(std::string_view text) {
  std::vector<bool> is_there(0x110000);
  for (std::size_t at = 0; at < text.size();) {
    char32_t c = 0;
    at += std::max<std::size_t>(1, decode_utf8(text, at, c));
    is_there[c] = true;
  }
  std::u32string characters;
  for (char32_t c = 0; c < is_there.size(); ++c)
    if (is_there[c]) characters.push_back(c);
  return vocabulary{std::move(characters)};
}

vocabulary::vocabulary(std::u32string characters) : characters_(std::move(characters)) {
  if (characters_.empty() ||
      std::adjacent_find(characters_.begin(), characters_.end(), std::greater_equal<>{}) != characters_.end())
    throw std::runtime_error("a vocabulary's characters are expected to be ascending and different, and at least one");
  numbers_.assign(characters_.back() + std::size_t{1}, -1);
  for (std::size_t i = 0; i < characters_.size(); ++i) numbers_[characters_[i]] = static_cast<std::int32_t>(i);
}

std::vector<std::int64_t> vocabulary::encode(const std::u32string& text) const {
  std::vector<std::int64_t> tokens;
  tokens.reserve(text.size());
  for (const auto c : text) {
    const auto number = c < numbers_.size() ? numbers_[c] : -1;
    if (number < 0) {
      char code[16];
      std::snprintf(code, sizeof code, "U+%04X", static_cast<unsigned>(c));
      throw std::runtime_error("the character '" + to_utf8(std::u32string(1, c)) + "' (" + code + ", at " +
                               std::to_string(tokens.size()) + ") is not among the " + std::to_string(size()) +
                               " that the model was trained on; leave it out");
    }
    tokens.push_back(number);
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
