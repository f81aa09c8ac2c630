// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/data_folder.hpp>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::support {

namespace fs = std::filesystem;

namespace {

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

bool is_below(const fs::path& folder, const fs::path& path) {
  const auto parts = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return parts.first == folder.end() && parts.second != path.end();
}

}  // namespace

data_folder::data_folder(const std::string& folder) {
  if (folder.empty()) return;
  std::error_code why;
  fs::create_directories(folder, why);
  if (why) refuse(folder, "can't be made", why);
  folder_ = fs::canonical(folder, why);
  if (why) refuse(folder, "can't be found", why);
  try_to_write(folder_, folder);
}

std::string data_folder::path_of(const std::string& path) const {
  if (folder_.empty()) return path;
  std::error_code why;
  const auto whole = fs::weakly_canonical(folder_ / path, why);  // an absolute `path` stays as it is
  if (!why && is_below(folder_, whole)) return whole.string();
  throw error(errc::misuse, "the path '" + path + "' leads out of this node's data folder '" + folder_.string() +
                              "'; name a path below it, or start the node with another --data-dir");
}

std::string data_folder::path_to_write(const std::string& path) const {
  auto whole = path_of(path);
  if (folder_.empty()) return whole;
  std::error_code why;
  const auto parent = fs::path(whole).parent_path();
  fs::create_directories(parent, why);
  if (why) throw error(errc::function_failed, "can't make the folder '" + parent.string() + "': " + why.message());
  return whole;
}

}  // namespace troupe::support
