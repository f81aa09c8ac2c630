// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::apps::charlm {

/// The characters of a text in ascending order, numbered from 0.
///   VO-1  encode throws std::runtime_error for a character that is not in it, by name and place.
class vocabulary {
 public:
  /// Of every character that the text has.
  static vocabulary of(const std::u32string& text);
  /// From the characters themselves, as `characters()` gave them.
  explicit vocabulary(std::u32string characters);

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(characters_.size()); }
  const std::u32string& characters() const noexcept { return characters_; }

  std::vector<std::int64_t> encode(const std::u32string& text) const;
  std::u32string decode(const std::vector<std::int64_t>& tokens) const;

 private:
  std::u32string characters_;
};

}  // namespace troupe::apps::charlm
