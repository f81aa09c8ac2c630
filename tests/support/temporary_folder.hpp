// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

namespace troupe::apps::test {

/// A folder that is removed with this object.
class temporary_folder {
 public:
  temporary_folder() {
    auto name = (std::filesystem::temp_directory_path() / "troupe-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("can't make a folder like " + name);
    path_ = name;
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

  /// Writes a file; returns its path.
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// The content of a file; empty if there is none.
inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// For BOOST_CHECK_EXCEPTION: the text of an exception has all these words.
inline std::function<bool(const std::exception&)> says(std::vector<std::string> words) {
  return [words = std::move(words)](const std::exception& failure) {
    const std::string text = failure.what();
    for (const auto& word : words)
      if (text.find(word) == std::string::npos) {
        BOOST_TEST_MESSAGE("expected '" << word << "' in: " << text);
        return false;
      }
    return true;
  };
}

}  // namespace troupe::apps::test
