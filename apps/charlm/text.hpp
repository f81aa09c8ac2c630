// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe::apps::charlm {

/// The folder with the default text. Every Debian machine has it.
inline constexpr const char* licence_folder = "/usr/share/common-licenses";

/// A text as characters (Unicode code points), and the file or folder it came from.
///   TX-1  a file that is missing, empty, binary (has a NUL byte or is not UTF-8) or too short throws std::runtime_error with
///         what was expected, what came, where, and what to do.
///   TX-2  the same files give the same characters in the same order, and so the same fingerprint.
struct text {
  std::u32string characters;
  std::string origin;

  /// Reads a UTF-8 file, or the regular files of a folder in the order of their names. Links in the folder are left out.
  static text read(const std::string& path);
  /// Reads a text from bytes; `origin` names the text in error texts.
  static text parse(const std::string& bytes, const std::string& origin);

  /// 16 hexadecimal digits (FNV-1a, 64 bits). Two different texts practically never have the same fingerprint.
  std::string fingerprint() const;
};

/// The characters in UTF-8. A number that is no code point becomes U+FFFD.
std::string to_utf8(const std::u32string& characters);
/// The code points of UTF-8 bytes. Throws std::runtime_error with the offset of the first byte that is not UTF-8.
std::u32string from_utf8(const std::string& bytes);

}  // namespace troupe::apps::charlm
