// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>

#include "support/contains.hpp"

namespace troupe::test {

/// The constructor makes an empty folder. The destructor removes the folder with all its files.
class temporary_folder {
 public:
  temporary_folder() {
    auto pattern = (std::filesystem::temp_directory_path() / "troupe-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("can't make a temporary folder");
    path_ = pattern;
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  std::string path() const { return path_.string(); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& one : std::filesystem::directory_iterator(path_)) names.insert(one.path().filename().string());
    return names;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

/// Returns the text of the exception of type T that `run` throws; an empty text if `run` throws nothing.
template <class T, class F>
std::string text_of(F&& run) {
  try {
    run();
  } catch (const T& caught) {
    return caught.what();
  }
  return {};
}

}  // namespace troupe::test
