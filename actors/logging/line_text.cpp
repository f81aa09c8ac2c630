// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/logging/line_text.hpp>

#include <array>
#include <cassert>
#include <cstdint>
#include <cstdio>

namespace troupe::logging {

namespace {

struct character {
  std::uint32_t value = 0;
  std::size_t bytes = 1;
  bool valid = false;
};

/// The first character of a UTF-8 text. Pre: the text is not empty.
character first_of(std::string_view text) {
  assert(!text.empty());
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t value = lead & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return {};
    value = (value << 6) | (next & 0x3fu);
  }
  constexpr std::array<std::uint32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < least[bytes] || value > 0x10ffff || surrogate) return {};
  return {value, bytes, true};
}

/// Whether a terminal or an editor takes the character as a command and does not show it.
bool is_command(std::uint32_t c) {
  const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  const bool line_break = c == 0x2028 || c == 0x2029;
  const bool direction =
    c == 0x200e || c == 0x200f || c == 0x061c || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
  return control || line_break || direction;
}

std::string escaped(std::uint32_t value) {
  if (value == '\n') return "\\n";
  if (value == '\r') return "\\r";
  if (value == '\t') return "\\t";
  std::array<char, 16> text;
  std::snprintf(text.data(), text.size(), value < 0x100 ? "\\x%02x" : "\\u{%04x}", static_cast<unsigned>(value));
  return text.data();
}

}  // namespace

std::string one_line(std::string_view text, std::size_t most) {
  std::string result;
  while (!text.empty()) {
    const auto next = first_of(text);
    const bool shown = next.valid && !is_command(next.value);
    const auto piece = shown ? std::string(text.substr(0, next.bytes))
                             : escaped(next.valid ? next.value : static_cast<unsigned char>(text.front()));
    if (result.size() + piece.size() > most) return result + "... (" + std::to_string(text.size()) + " bytes more)";
    result += piece;
    text.remove_prefix(next.bytes);
  }
  return result;
}

std::string json_string(std::string_view line) {
  std::string result = "\"";
  for (const char each : line) {
    if (each == '"' || each == '\\') result += '\\';
    result += each;
  }
  return result += '"';
}

}  // namespace troupe::logging
