// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace troupe::apps::charlm {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t portion = 1 << 20;  // bytes that are read at once

std::string megabytes(std::uintmax_t bytes) { return std::to_string((bytes + 999'999) / 1'000'000) + " MB"; }

void check_length(std::uintmax_t bytes, std::size_t most, const std::string& origin) {
  if (bytes > most)
    throw std::runtime_error("expected a text of at most " + megabytes(most) + " in " + origin +
                             ", but it is longer; name a part of it with --data FILE");
}

void check_no_zero(std::string_view bytes, std::size_t begin, const std::string& origin) {
  if (const auto zero = bytes.find('\0', begin); zero != std::string_view::npos)
    throw std::runtime_error("expected a text in " + origin + ", but byte " + std::to_string(zero) +
                             " is NUL, so it is a binary file; name a text with --data FILE");
}

/// Calls `take` with each code point.
template <class Take>
void for_each_character(std::string_view bytes, const Take& take) {
  for (std::size_t at = 0; at < bytes.size();) {
    char32_t c = 0;
    const auto length = decode_utf8(bytes, at, c);
    if (length == 0) {
      char seen[8];
      std::snprintf(seen, sizeof seen, "0x%02X", static_cast<unsigned>(static_cast<unsigned char>(bytes[at])));
      throw std::runtime_error("byte " + std::to_string(at) + " (" + seen + ") is not UTF-8");
    }
    take(c);
    at += length;
  }
}

void check_utf8(std::string_view bytes, const std::string& origin) {
  try {
    for_each_character(bytes, [](char32_t) {});
  } catch (const std::runtime_error& e) {
    throw std::runtime_error("expected a text in UTF-8 in " + origin + ", but " + e.what() +
                             "; convert it (iconv -t UTF-8), or name another with --data FILE");
  }
}

/// Appends a file to `all`. Throws as soon as the text is longer than `most` bytes, because some devices and pipes have no end.
void append_file(std::string& all, const fs::path& path, std::size_t most, const std::string& origin) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  const auto begin = all.size();
  while (in) {
    const auto end = all.size();
    all.resize(end + portion);
    in.read(all.data() + end, portion);
    all.resize(end + static_cast<std::size_t>(in.gcount()));
    check_no_zero(std::string_view(all).substr(begin), end - begin, path.string());
    check_length(all.size(), most, origin);
  }
  if (!in.eof())
    throw std::runtime_error("expected a text file that can be read at " + path.string() + ": " + std::strerror(errno) +
                             "; check its permissions, or name another with --data FILE");
  check_utf8(std::string_view(all).substr(begin), path.string());
}

std::vector<fs::path> files_of(const std::string& path) {
  std::error_code failure;
  const auto status = fs::status(path, failure);
  if (!fs::exists(status))
    throw std::runtime_error("expected a text file at " + path + ", but there is none; name one with --data FILE");
  if (!fs::is_directory(status)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  if (files.empty())
    throw std::runtime_error("expected text files in the folder " + path + ", but it holds none; name a file with --data FILE");
  std::sort(files.begin(), files.end());
  return files;
}

void append_utf8(std::string& out, char32_t c) {
  const auto add = [&](unsigned x) { out.push_back(static_cast<char>(x)); };
  if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) c = 0xFFFD;
  if (c < 0x80) {
    add(c);
  } else if (c < 0x800) {
    add(0xC0 | (c >> 6));
    add(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    add(0xE0 | (c >> 12));
    add(0x80 | ((c >> 6) & 0x3F));
    add(0x80 | (c & 0x3F));
  } else {
    add(0xF0 | (c >> 18));
    add(0x80 | ((c >> 12) & 0x3F));
    add(0x80 | ((c >> 6) & 0x3F));
    add(0x80 | (c & 0x3F));
  }
}

}  // namespace

std::size_t decode_utf8(std::string_view bytes, std::size_t at, char32_t& out) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const auto lead = byte(at);
  if (lead < 0x80) {
    out = lead;
    return 1;
  }
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (length == 0 || lead > 0xF4 || at + length > bytes.size()) return 0;
  char32_t value = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
    value = (value << 6) | (byte(at + i) & 0x3Fu);
  }
  const char32_t smallest = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  if (value < smallest || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return 0;
  out = value;
  return length;
}

std::u32string from_utf8(std::string_view bytes) {
  std::u32string characters;
  characters.reserve(bytes.size());
  for_each_character(bytes, [&](char32_t c) { characters.push_back(c); });
  return characters;
}

std::string to_utf8(const std::u32string& characters) {
  std::string out;
  out.reserve(characters.size());
  for (const auto c : characters) append_utf8(out, c);
  return out;
}

text text::parse(std::string bytes, const std::string& origin) {
  if (bytes.empty())
    throw std::runtime_error("expected a text in " + origin + ", but it is empty; name another file with --data FILE");
  check_no_zero(bytes, 0, origin);
  check_utf8(bytes, origin);
  return {std::move(bytes), origin};
}

text text::read(const std::string& path, const std::function<void(const std::string&)>& tell, std::size_t most) {
  const auto files = files_of(path);
  std::uintmax_t bytes = 0;
  for (const auto& file : files)
    if (fs::is_regular_file(file)) bytes += fs::file_size(file);
  check_length(bytes, most, path);
  if (tell && bytes >= many_bytes) tell("reading " + megabytes(bytes) + " of text from " + path + " ...");
  text whole{{}, path};
  whole.bytes.reserve(bytes + portion);
  for (const auto& file : files) append_file(whole.bytes, file, most, path);
  if (whole.bytes.empty())
    throw std::runtime_error("expected a text in " + path + ", but " + (files.size() == 1 ? "it is" : "its files are") +
                             " empty; name another with --data FILE");
  return whole;
}

std::string text::fingerprint() const {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for_each_character(bytes, [&](char32_t c) {
    for (int i = 0; i < 4; ++i, c >>= 8) hash = (hash ^ (c & 0xFFu)) * 0x100000001b3u;
  });
  char out[17];
  std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(hash));
  return out;
}

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
