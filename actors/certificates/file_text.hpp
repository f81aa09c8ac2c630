// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/certificates/authority_test.cpp
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <string>

namespace troupe::certificates {

/// The content of a regular file and what the system says about it.
struct file_text {
  std::string text;
  struct stat facts {};
};

/// Throws troupe::error (misuse) with the file and the reason if the file can't be read, is not regular, or has more than `most`
/// bytes.
file_text read_file(const std::filesystem::path& file, std::size_t most);

}  // namespace troupe::certificates
