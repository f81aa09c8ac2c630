// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace troupe::apps::charlm {

namespace fs = std::filesystem;

namespace {

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw std::runtime_error("expected a text file that can be read at " + path.string() + ": " + std::strerror(errno) +
                             "; check its permissions, or name another with --data FILE");
  return {std::istreambuf_iterator<char>(in), {}};
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

/// The length of the UTF-8 sequence at `at`, and its code point in `out`; 0 if there is none.
std::size_t decode(const std::string& bytes, std::size_t at, char32_t& out) {
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

std::u32string from_utf8(const std::string& bytes) {
  std::u32string characters;
  characters.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    char32_t c = 0;
    const auto length = decode(bytes, at, c);
    if (length == 0) {
      char seen[8];
      std::snprintf(seen, sizeof seen, "0x%02X", static_cast<unsigned>(static_cast<unsigned char>(bytes[at])));
      throw std::runtime_error("byte " + std::to_string(at) + " (" + seen + ") is not UTF-8");
    }
    characters.push_back(c);
    at += length;
  }
  return characters;
}

std::string to_utf8(const std::u32string& characters) {
  std::string out;
  out.reserve(characters.size());
  for (const auto c : characters) append_utf8(out, c);
  return out;
}

text text::parse(const std::string& bytes, const std::string& origin) {
  if (bytes.empty())
    throw std::runtime_error("expected a text in " + origin + ", but it is empty; name another file with --data FILE");
  if (const auto zero = bytes.find('\0'); zero != std::string::npos)
    throw std::runtime_error("expected a text in " + origin + ", but byte " + std::to_string(zero) +
                             " is NUL, so it is a binary file; name a text with --data FILE");
  try {
    return {from_utf8(bytes), origin};
  } catch (const std::runtime_error& e) {
    throw std::runtime_error("expected a text in UTF-8 in " + origin + ", but " + e.what() +
                             "; convert it (iconv -t UTF-8), or name another with --data FILE");
  }
}

text text::read(const std::string& path) {
  text whole{{}, path};
  const auto files = files_of(path);
  for (const auto& file : files) {
    const auto bytes = read_file(file);
    if (bytes.empty() && files.size() > 1) continue;
    whole.characters += parse(bytes, file.string()).characters;
  }
  if (whole.characters.empty())
    throw std::runtime_error("expected a text in " + path + ", but its files are empty; name another with --data FILE");
  return whole;
}

std::string text::fingerprint() const {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (auto c : characters)
    for (int i = 0; i < 4; ++i, c >>= 8) hash = (hash ^ (c & 0xFFu)) * 0x100000001b3u;
  char out[17];
  std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(hash));
  return out;
}

}  // namespace troupe::apps::charlm
