// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/objects/checkpoint_test.cpp
#include <troupe/actors/objects/checkpoint.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string_view>

#include <google/protobuf/util/json_util.h>

#include <troupe/actors/objects/generated/checkpoint.pb.h>
#include <troupe/actors/support/data_folder.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/plain_text.hpp>

namespace troupe::objects {

namespace {

namespace fs = std::filesystem;

constexpr auto manifest_name = "checkpoint.json";
constexpr auto part_suffix = ".safetensors";

std::string hex16(std::uint64_t number) {
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; number >>= 4) text[i] = "0123456789abcdef"[number & 15];
  return text;
}

/// Whether it is 16 hexadecimal digits.
bool is_hex16(const std::string& text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// The id of the save in the file name of a part. A part that was not written to its end (`.part`) counts too. Empty for any
/// other file name.
std::string save_of(std::string name) {
  const auto drop = [&name](std::string_view suffix) {
    const bool is_there = name.ends_with(suffix);
    if (is_there) name.resize(name.size() - suffix.size());
    return is_there;
  };
  drop(".part");
  const bool is_part = drop(part_suffix);
  const auto dot = name.rfind('.');
  return is_part && dot != std::string::npos && dot > 0 && is_hex16(name.substr(dot + 1)) ? name.substr(dot + 1)
                                                                                          : std::string{};
}

/// The name of a node in the file names of its parts.
std::string escaped(const std::string& node) {
  std::string name;
  for (const unsigned char c : node)
    if (c < 128 && (std::isalnum(c) != 0 || c == '_' || c == '-'))
      name += static_cast<char>(c);
    else
      name += {'%', "0123456789ABCDEF"[c >> 4], "0123456789ABCDEF"[c & 15]};
  return name;
}

void remove_where(const std::string& folder, const std::function<bool(const std::string& save)>& unwanted) noexcept {
  std::error_code ignored;
  std::vector<fs::path> found;
  try {
    for (const auto& one : fs::directory_iterator(folder, ignored))
      if (auto save = save_of(one.path().filename().string()); !save.empty() && unwanted(save)) found.push_back(one.path());
  } catch (const std::exception&) {
    // The next save removes the files that are left.
  }
  for (const auto& path : found) fs::remove(path, ignored);
}

checkpoint_file::Value to_proto(const attribute& from) {
  checkpoint_file::Value to;
  if (const auto* truth = std::get_if<bool>(&from.value))
    to.set_truth(*truth);
  else if (const auto* integer = std::get_if<std::int64_t>(&from.value))
    to.set_integer(*integer);
  else if (const auto* real = std::get_if<double>(&from.value))
    to.set_real(*real);
  else if (const auto* text = std::get_if<std::string>(&from.value))
    std::all_of(text->begin(), text->end(), [](char c) { return static_cast<unsigned char>(c) < 128; }) ? to.set_text(*text)
                                                                                                        : to.set_binary(*text);
  else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&from.value))
    to.mutable_integers()->mutable_values()->Add(integers->begin(), integers->end());
  else if (const auto* reals = std::get_if<std::vector<double>>(&from.value))
    to.mutable_reals()->mutable_values()->Add(reals->begin(), reals->end());
  else {
    auto& texts = *to.mutable_texts();
    for (const auto& each : std::get<std::vector<std::string>>(from.value)) *texts.add_values() = to_proto(each);
  }
  return to;
}

attribute from_proto(const checkpoint_file::Value& from) {
  switch (from.value_case()) {
    case checkpoint_file::Value::kTruth:
      return from.truth();
    case checkpoint_file::Value::kInteger:
      return std::int64_t{from.integer()};
    case checkpoint_file::Value::kReal:
      return from.real();
    case checkpoint_file::Value::kText:
      return from.text();
    case checkpoint_file::Value::kBinary:
      return from.binary();
    case checkpoint_file::Value::kIntegers:
      return std::vector<std::int64_t>(from.integers().values().begin(), from.integers().values().end());
    case checkpoint_file::Value::kReals:
      return std::vector<double>(from.reals().values().begin(), from.reals().values().end());
    case checkpoint_file::Value::kTexts: {
      std::vector<std::string> texts;
      for (const auto& each : from.texts().values())
        texts.push_back(each.value_case() == checkpoint_file::Value::kBinary ? each.binary() : each.text());
      return texts;
    }
    case checkpoint_file::Value::VALUE_NOT_SET:
      break;
  }
  return {};
}

[[noreturn]] void damaged(const fs::path& path, const std::string& why) {
  throw error(errc::function_failed, "the checkpoint's '" + path.string() + "' is damaged: " + why);
}

void check_kind_of_checksum(const fs::path& path, const checkpoint_file::Part& part) {
  try {
    support::expect_checksum_name(part.checksum_kind());
  } catch (const error& unknown) {
    throw error(errc::function_failed, "'" + path.string() + "' names '" + part.file() + "': " + unknown.what());
  }
}

void check_folder(const fs::path& path, const part_entry& entry) {
  if (entry.folder.empty()) return;
  try {
    support::names_in_path(entry.folder);
  } catch (const error& refused) {
    damaged(path, "the folder of '" + entry.file + "' is expected to be a path below a node's data folder: " + refused.what());
  }
}

checkpoint_manifest from_proto(const fs::path& path, const checkpoint_file::Manifest& from) {
  if (from.version() != checkpoint_format)
    throw error(errc::function_failed, "'" + path.string() + "' has format " + std::to_string(from.version()) +
                                         "; this program reads format " + std::to_string(checkpoint_format));
  checkpoint_manifest to;
  to.save = from.save();
  if (!is_hex16(to.save)) damaged(path, "'save' is '" + to.save + "', expected 16 hexadecimal digits");
  for (const auto& part : from.parts()) {
    part_entry entry{part.node(), part.file(), {part.bytes(), 0}, part.folder()};
    check_folder(path, entry);
    // Parts lie in their folder itself: the name of a file must not lead out of it.
    if (entry.file != part_file_name(entry.node, to.save))
      damaged(path, "the part of node '" + entry.node + "' is called '" + entry.file + "', expected '" +
                      part_file_name(entry.node, to.save) + "'");
    const auto& digits = part.checksum();
    if (!is_hex16(digits))
      damaged(path, "the checksum of '" + entry.file + "' is '" + digits + "', expected 16 hexadecimal digits");
    check_kind_of_checksum(path, part);
    std::from_chars(digits.data(), digits.data() + digits.size(), entry.digest.sum, 16);
    to.parts.push_back(std::move(entry));
  }
  for (const auto& [name, value] : from.about()) to.about.emplace(name, from_proto(value));
  return to;
}

}  // namespace

std::string part_entry::path(const std::string& manifest_folder) const { return (fs::path(manifest_folder) / file).string(); }

const part_entry& checkpoint_manifest::part(const std::string& node) const {
  std::string names;
  for (const auto& one : parts) {
    if (one.node == node) return one;
    support::add_quoted(names, one.node);
  }
  throw error(errc::function_failed,
              "the checkpoint has no part of node '" + node + "'; it has " + (names.empty() ? "none" : names));
}

std::string new_save_id() {
  std::random_device device;
  return hex16((std::uint64_t{device()} << 32) | device());
}

bool is_save_id(const std::string& text) noexcept { return is_hex16(text); }

std::string part_file_name(const std::string& node, const std::string& save) {
  if (node.empty()) throw error(errc::misuse, "the part of a node without a name has no file name");
  if (!is_save_id(save)) throw error(errc::misuse, "a save is named by 16 hexadecimal digits, got '" + save + "'");
  return escaped(node) + "." + save + part_suffix;
}

void write_manifest(const std::string& folder, const checkpoint_manifest& manifest) {
  checkpoint_file::Manifest to;
  to.set_version(checkpoint_format);
  to.set_save(manifest.save);
  for (const auto& part : manifest.parts) {
    auto& entry = *to.add_parts();
    entry.set_node(part.node);
    entry.set_file(part.file);
    entry.set_bytes(part.digest.bytes);
    entry.set_checksum(hex16(part.digest.sum));
    entry.set_checksum_kind(support::checksum_name);
    entry.set_folder(part.folder);
  }
  for (const auto& [name, value] : manifest.about) (*to.mutable_about())[name] = to_proto(value);
  google::protobuf::util::JsonPrintOptions print;
  print.add_whitespace = true;
  std::string text;
  const auto path = fs::path(folder) / manifest_name;
  if (auto status = google::protobuf::util::MessageToJsonString(to, &text, print); !status.ok())
    throw error(errc::misuse, "can't write '" + path.string() + "': " + std::string(status.message()));
  support::durable_file file(path.string());
  file.write(text.data(), text.size());
  file.commit();
  remove_other_parts(folder, manifest.save);
}

checkpoint_manifest read_manifest(const std::string& folder) {
  const auto path = fs::path(folder) / manifest_name;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw error(errc::function_failed, "no checkpoint in '" + folder + "': can't open '" + path.string() + "'");
  classic_ostringstream text;
  text << file.rdbuf();
  checkpoint_file::Manifest from;
  google::protobuf::util::JsonParseOptions parse;
  parse.ignore_unknown_fields = true;
  if (auto status = google::protobuf::util::JsonStringToMessage(text.str(), &from, parse); !status.ok())
    damaged(path, std::string(status.message()));
  return from_proto(path, from);
}

void remove_parts(const std::string& folder, const std::string& save) noexcept {
  remove_where(folder, [&](const std::string& found) { return found == save; });
}

void remove_other_parts(const std::string& folder, const std::string& save) noexcept {
  remove_where(folder, [&](const std::string& found) { return found != save; });
}

void remove_own_parts(const support::open_folder& folder, const std::string& node, const std::string& save,
                      own_parts which) noexcept {
  try {
    for (const auto& name : folder.names()) {
      const auto found = save_of(name);
      if (found.empty() || (found == save) != (which == own_parts::of_this_save)) continue;
      const auto own = part_file_name(node, found);
      if (name == own || name == own + ".part") folder.remove(name);
    }
  } catch (const std::exception&) {
    // The next save removes the files that are left.
  }
}

}  // namespace troupe::objects
