// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/charlm/text_test.cpp, tests/apps/charlm/vocabulary_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::apps::charlm {

/// The folder with the default text. Every Debian machine has it.
inline constexpr const char* licence_folder = "/usr/share/common-licenses";

/// A text in UTF-8, and the file or folder it came from.
///   TX-1  a file throws std::runtime_error if it is missing, empty, too short or too long, has no end, or is binary (has a NUL
///         byte or is not UTF-8). The error says what was expected, what came, where, and what to do.
///   TX-2  the same files give the same characters in the same order, and so the same fingerprint.
///   TX-3  a text takes as much memory as its files have bytes.
struct text {
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;
  static constexpr std::size_t many_bytes = 16'000'000;  // from this size on, a line tells a person that reading takes time

  std::string bytes;
  std::string origin;

  /// Reads a UTF-8 file, or the regular files of a folder in the order of their names. Links in the folder are left out. `tell`
  /// gets a line for a person before a long text is read.
  static text read(const std::string& path, const std::function<void(const std::string&)>& tell = {},
                   std::size_t most = most_bytes);
  /// Reads a text from bytes; `origin` names the text in error texts.
  static text parse(std::string bytes, const std::string& origin);

  /// 16 hexadecimal digits (FNV-1a, 64 bits). Two different texts practically never have the same fingerprint.
  std::string fingerprint() const;
};

/// Returns the characters in UTF-8. A number that is no code point becomes U+FFFD.
std::string to_utf8(const std::u32string& characters);
/// Returns the code points of UTF-8 bytes. Throws std::runtime_error with the offset of the first byte that is not UTF-8.
std::u32string from_utf8(std::string_view bytes);
/// Decodes the UTF-8 sequence that begins at byte `at`. Returns its length in bytes, and its code point in `out`. Returns 0 if
/// the bytes are not UTF-8.
std::size_t decode_utf8(std::string_view bytes, std::size_t at, char32_t& out);
/// Whether this byte of a UTF-8 text is the first byte of a character.
constexpr bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

/// The characters of a text in ascending order, numbered from 0.
///   VO-1  encode() throws std::runtime_error, with the character and its position, for a character that is not in the
///         vocabulary.
class vocabulary {
 public:
  static vocabulary of(std::string_view text);
  /// Makes the vocabulary of the given characters, in the form that characters() returns.
  explicit vocabulary(std::u32string characters);

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(characters_.size()); }
  const std::u32string& characters() const noexcept { return characters_; }

  std::vector<std::int64_t> encode(const std::u32string& text) const;
  std::u32string decode(const std::vector<std::int64_t>& tokens) const;

 private:
  std::u32string characters_;
  std::vector<std::int32_t> numbers_;  // by code point: the number of the character; -1: not in the vocabulary
};

}  // namespace troupe::apps::charlm
