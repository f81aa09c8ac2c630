// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string>

namespace troupe::support {

/// The folder to which other nodes may make a node write, and from which they may make it read.
///   DA-1  a relative path is a path below the folder. Without a folder every path stays as it is.
///   DA-2  a path that leads out of the folder is refused: an absolute path, one with "..", and one through a symbolic link.
///   DA-3  the folder exists and can be written to when the constructor returns.
class data_folder {
 public:
  /// Makes the folder if it is not there. Empty: no folder. Throws troupe::error (misuse) with the folder and the reason.
  explicit data_folder(const std::string& folder = {});

  /// Throws troupe::error (misuse) with the path and the folder (DA-2).
  std::string path_of(const std::string& path) const;
  /// As path_of(), and makes the folder of the file. Throws troupe::error (function_failed) with the reason if it can't be made.
  std::string path_to_write(const std::string& path) const;

 private:
  std::filesystem::path folder_;  // absolute, without symbolic links; empty: none
};

}  // namespace troupe::support
