// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/data_folder.hpp>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <troupe/actors/support/refused_request.hpp>

namespace troupe::support {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t longest_path = 1024;
constexpr std::size_t longest_name = 255;
constexpr std::size_t deepest_path = 16;
constexpr std::size_t longest_quote = 100;

[[noreturn]] void refuse(const std::string& folder, const std::string& what, const std::error_code& why) {
  throw error(errc::misuse, "settings: the data folder '" + folder + "' " + what + ": " + why.message() +
                              "; name a folder that this user may write to (--data-dir)");
}

/// Only an attempt tells whether a file can be written: rights, a read-only file system, and a full disk all forbid it.
void try_to_write(const fs::path& folder, const std::string& named) {
  auto name = (folder / ".troupe-XXXXXX").string();
  const owned_descriptor file(::mkostemp(name.data(), O_CLOEXEC));
  const bool written = file && ::write(file.get(), "\n", 1) == 1;
  const std::error_code why(errno, std::generic_category());
  if (file) ::unlink(name.c_str());
  if (!written) refuse(named, "can't be written to", why);
}

bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

[[noreturn]] void refuse_path(const std::string& path, const std::string& what) {
  auto quoted = path.substr(0, longest_quote);
  std::replace_if(quoted.begin(), quoted.end(), is_control, '?');
  throw refused_request("the path '" + quoted + (quoted.size() < path.size() ? "..." : "") + "' " + what);
}

}  // namespace

std::vector<std::string> names_in_path(const std::string& path) {
  constexpr auto leads_out = "leads out of this node's data folder; name a path below the folder, without '..'";
  if (path.size() > longest_path) refuse_path(path, "has more than " + std::to_string(longest_path) + " bytes");
  if (std::any_of(path.begin(), path.end(), is_control)) refuse_path(path, "has control characters");
  if (path.starts_with('/')) refuse_path(path, leads_out);
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin < path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    auto name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty() || name == ".") continue;
    if (name == "..") refuse_path(path, leads_out);
    if (name.front() == '.') refuse_path(path, "has a hidden name; name a path whose names begin with no dot");
    if (name.size() > longest_name) refuse_path(path, "has a name of more than " + std::to_string(longest_name) + " bytes");
    names.push_back(std::move(name));
  }
  if (names.empty()) refuse_path(path, "names nothing below this node's data folder; name a file or folder there");
  if (names.size() > deepest_path) refuse_path(path, "has more than " + std::to_string(deepest_path) + " names");
  return names;
}

data_folder::data_folder(const std::string& folder) {
  if (folder.empty()) return;
  std::error_code why;
  fs::create_directories(folder, why);
  if (why) refuse(folder, "can't be made", why);
  const auto found = fs::canonical(folder, why);
  if (why) refuse(folder, "can't be found", why);
  try_to_write(found, folder);
  folder_ = found.string();
  root_.emplace(folder_, std::string{});
}

const open_folder& data_folder::root() const {
  if (root_) return *root_;
  throw refused_request(
    "the request names a path, and this node has no data folder for paths of other nodes; start the node with --data-dir "
    "FOLDER "
    "(settings::data_dir)");
}

std::optional<open_folder> data_folder::find(const std::string& path) const {
  const auto& from = root();
  std::optional<open_folder> found;
  for (const auto& name : names_in_path(path)) {
    found = (found ? *found : from).find(name);
    if (!found) break;
  }
  return found;
}

open_folder data_folder::find_or_make(const std::string& path) const {
  const auto& from = root();
  std::optional<open_folder> found;
  for (const auto& name : names_in_path(path)) found = (found ? *found : from).find_or_make(name);
  return std::move(*found);
}

open_folder data_folder::nearest(const std::string& path) const {
  auto there = root();
  for (const auto& name : names_in_path(path)) {
    auto next = there.find(name);
    if (!next) break;
    there = std::move(*next);
  }
  return there;
}

std::string data_folder::path_of(const std::string& path) const {
  const auto& from = root();
  const auto names = names_in_path(path);
  auto whole = fs::path(folder_);
  for (const auto& name : names) whole /= name;
  std::optional<open_folder> found;
  for (std::size_t i = 0; i + 1 < names.size(); ++i) {
    found = (found ? *found : from).find(names[i]);
    if (!found) return whole.string();
  }
  if ((found ? *found : from).is_link(names.back()))
    refuse_path(path, "leads to a symbolic link, and links are not followed; name a path without links");
  return whole.string();
}

}  // namespace troupe::support
