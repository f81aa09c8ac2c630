// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::apps::charlm {

/// The characters of a text in ascending order, numbered from 0.
///   VO-1  encode throws std::runtime_error, with the character and its position, for a character that is not in the
///         vocabulary.
class vocabulary {
 public:
  static vocabulary of(std::string_view text);
  /// The vocabulary of the given characters, as `characters()` returns them.
  explicit vocabulary(std::u32string characters);

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(characters_.size()); }
  const std::u32string& characters() const noexcept { return characters_; }

  std::vector<std::int64_t> encode(const std::u32string& text) const;
  std::u32string decode(const std::vector<std::int64_t>& tokens) const;

 private:
  std::u32string characters_;
  std::vector<std::int32_t> numbers_;  // of each code point up to the last character; -1: none
};

}  // namespace troupe::apps::charlm
