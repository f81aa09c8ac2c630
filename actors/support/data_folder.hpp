// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <troupe/actors/support/open_folder.hpp>

namespace troupe::support {

/// The folder to which other nodes may make a node write, and from which they may make it read. All code that gets a path from
/// another node finds the file through this class. Without a folder every path is refused.
///   DA-1  each path is taken as a path below the folder.
///   DA-2  a path that leads out of the folder is refused: an absolute path, one with "..", and one through a symbolic link. So
///         are hidden names, control characters, and paths that are long or deep.
///   DA-3  the folder exists and can be written to when the constructor returns. The node keeps it open.
///   DA-4  a refusal tells nothing about files outside of the folder, nor where the folder is.
class data_folder {
 public:
  /// Makes the folder if it is not there. Empty: no folder. Throws troupe::error (misuse) with the folder and the reason.
  explicit data_folder(const std::string& folder = {});

  explicit operator bool() const noexcept { return root_.has_value(); }

  /// The folder at `path`; empty if it is not there. find(), find_or_make(), nearest() and path_of() throw refused_request
  /// (DA-2), and troupe::error (function_failed) with the reason if something can't be opened.
  std::optional<open_folder> find(const std::string& path) const;
  /// The folder at `path`, which is made if it is not there.
  open_folder find_or_make(const std::string& path) const;
  /// The folder at `path`; if it is not there, the deepest folder on the way to it that is there.
  open_folder nearest(const std::string& path) const;

  /// The absolute path of a file, for code that opens files by their paths. A link that another process puts at the path later
  /// is not noticed.
  std::string path_of(const std::string& path) const;

 private:
  const open_folder& root() const;

  std::string folder_;  // absolute, without symbolic links; empty: none
  std::optional<open_folder> root_;
};

/// The names that a path of another node consists of. Throws refused_request unless DA-2 allows the path, whatever lies on the
/// disk.
std::vector<std::string> names_in_path(const std::string& path);

}  // namespace troupe::support
