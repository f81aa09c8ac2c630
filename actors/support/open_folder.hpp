// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::support {

/// A folder that this process holds open, for folders and files that other nodes name. A file or folder in it is opened by its
/// name, relative to the open folder. A name that is not plain (see is_plain_name) fails with EINVAL. Copies share the open
/// folder.
///   OF-1  no symbolic link is followed, neither to a folder nor to a file, whenever the link was put there.
///   OF-2  a file that is made is new: nothing is written to an older file of this name. Files that are read are regular files.
///   OF-3  no error text holds more of a path than the text that the other node has sent.
class open_folder {
 public:
  static constexpr mode_t usual_mode = 0666;  // of a new file, less what the umask of the process takes away

  /// The folder at a path of this process's own choice, where links are followed. `text`: the folder's name in error texts.
  /// Throws troupe::error (function_failed) with the reason.
  explicit open_folder(const std::string& path, std::string text);

  /// The folder `name` in this folder; empty if nothing has this name. Throws refused_request if `name` is a link. Throws
  /// troupe::error (function_failed) with the reason if the folder can't be opened.
  std::optional<open_folder> find(const std::string& name) const;
  /// As find(), and makes the folder if nothing has this name.
  open_folder find_or_make(const std::string& name) const;

  /// The names of all files and folders in the folder. Throws troupe::error (function_failed).
  std::vector<std::string> names() const;
  bool is_link(const std::string& name) const noexcept;
  /// The name, in error texts, of a file or folder in this folder.
  std::string text_of(const std::string& name) const { return text_.empty() ? name : text_ + "/" + name; }

  /// Opens a regular file to read, or makes a file to write. Empty if that fails; errno then says why (ELOOP for a link).
  owned_descriptor read(const std::string& name) const noexcept;
  owned_descriptor create(const std::string& name, mode_t mode = usual_mode) const noexcept;
  /// Renames a file. `replaces`: whether a file with the name `to` may be replaced. False if that fails; errno then says why.
  bool rename(const std::string& from, const std::string& to, bool replaces = true) const noexcept;
  void remove(const std::string& name) const noexcept;
  /// Returns when the names of the files would survive a loss of power.
  void sync() const noexcept;

  /// The bytes that files of this user may still take on the disk; empty if the system does not say.
  std::optional<std::uint64_t> free_space() const noexcept;

  /// The folder's name in error texts.
  const std::string& text() const noexcept { return text_; }

 private:
  open_folder(owned_descriptor folder, std::string text);

  int descriptor() const noexcept { return folder_->get(); }

  std::shared_ptr<const owned_descriptor> folder_;
  std::string text_;
};

/// Whether the text can be the name of a file or folder in its folder: no slash, no NUL, not "", "." or "..".
bool is_plain_name(const std::string& name) noexcept;

/// Where a file lies: at a path of this process's own choice, where links are followed, or in an open folder.
class file_location {
 public:
  file_location(std::string path) : name_(std::move(path)) {}  // NOLINT(google-explicit-constructor): each path is one
  file_location(const char* path) : name_(path) {}             // NOLINT(google-explicit-constructor)
  file_location(open_folder folder, std::string name) : folder_(std::move(folder)), name_(std::move(name)) {}

  /// The location of a file beside this one, with the suffix added to its name.
  file_location with(const std::string& suffix) const;

  /// Opens the file. Throws refused_request for a link in an open folder, else troupe::error (function_failed) with the reason.
  owned_descriptor read() const;
  /// Makes the file. `mode`: who may read and write it, as for open(2). With another mode than usual_mode, nothing is written
  /// to an older file of this name. Empty if that fails; errno then says why.
  owned_descriptor create(mode_t mode = open_folder::usual_mode) const noexcept;
  /// Gives the file the name of `other`, a location in the same folder. `replaces`: whether a file of that name may be
  /// replaced. False if that fails; errno then says why.
  bool rename_to(const file_location& other, bool replaces = true) const noexcept;
  void remove() const noexcept;
  void sync_folder() const noexcept;

  /// The name of the file in error texts.
  std::string text() const;

 private:
  std::optional<open_folder> folder_;  // empty: `name_` is a path
  std::string name_;
};

}  // namespace troupe::support
