// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::apps::charlm {

/// Where the default text is found on every Debian machine.
inline constexpr const char* licence_folder = "/usr/share/common-licenses";

/// A text as characters (Unicode code points), with where it came from.
///   TX-1  a file that is missing, empty, binary (a NUL byte, not UTF-8) or too short throws std::runtime_error with what was
///         expected, what came, where, and what to do.
///   TX-2  the same files give the same characters in the same order, and so the same fingerprint.
struct text {
  std::u32string characters;
  std::string origin;

  /// The characters of a UTF-8 file, or of a folder's regular files (links are left out) in the order of their names.
  static text read(const std::string& path);
  /// The same from bytes; `origin` stands for the file in error texts.
  static text parse(const std::string& bytes, const std::string& origin);

  /// 16 hexadecimal digits that two texts share only if they are equal, for all that matters here (FNV-1a, 64 bits).
  std::string fingerprint() const;
};

/// UTF-8 of code points; one that has none becomes U+FFFD.
std::string to_utf8(const std::u32string& characters);
/// Code points of UTF-8; throws std::runtime_error with the offset of the first byte that is none.
std::u32string from_utf8(const std::string& bytes);

}  // namespace troupe::apps::charlm
