// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/comma_locale_test.cpp
#pragma once

#include <array>
#include <charconv>
#include <locale>
#include <sstream>
#include <string>

/// Functions that write numbers as text, independent of the locale of the program. printf and std::to_string write doubles with
/// the comma of a locale, and streams group the digits of integers.
///   XN-1  a number has the form that it has in the locale "C".
namespace troupe {

/// "1.50": with `digits` digits after the point.
inline std::string fixed_text(double value, int digits) {
  std::array<char, 400> text;  // the largest double has 309 digits
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, digits).ptr;
  return {text.data(), end};
}

/// "0.25", "1e-05": with at most `digits` digits.
inline std::string number_text(double value, int digits = 6) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, digits).ptr;
  return {text.data(), end};
}

/// Writes numbers in this way.
class classic_ostringstream : public std::ostringstream {
 public:
  classic_ostringstream() { imbue(std::locale::classic()); }
};

}  // namespace troupe
