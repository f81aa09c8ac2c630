// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unistd.h>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

namespace troupe::test {

/// A folder of one test, removed at its end.
struct own_folder {
  own_folder() {
    static std::atomic<int> count = 0;
    path = std::filesystem::temp_directory_path() /
           ("troupe_bench_test_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(path);
  }
  own_folder(const own_folder&) = delete;
  own_folder& operator=(const own_folder&) = delete;
  ~own_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

  /// Writes a file below the folder, and makes the folders above it. Returns its path.
  std::filesystem::path write(const std::filesystem::path& name, const std::string& text) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
    return path / name;
  }

  std::filesystem::path path;
};

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace troupe::test
