// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace troupe::bench {

/// A new folder that only this user can read. It is removed with the object.
class scratch_folder {
 public:
  /// Throws std::runtime_error if the folder can't be made.
  scratch_folder() {
    if (::mkdtemp(name_.data()) == nullptr) throw std::runtime_error("can't make a folder like " + name_);
  }
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(name_, ignored);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  std::filesystem::path path() const { return name_; }

 private:
  std::string name_ = std::filesystem::temp_directory_path() / "troupe_bench_XXXXXX";
};

}  // namespace troupe::bench
