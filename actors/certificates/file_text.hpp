// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/certificates/authority_test.cpp
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>

namespace troupe::certificates {

/// Throws troupe::error (misuse) with the file and the reason.
[[noreturn]] void refuse_file(const std::filesystem::path& file, const std::string& why);

/// The content of a regular file and what the system says about it.
struct file_text {
  std::string text;
  struct stat facts {};
};

/// Throws troupe::error (misuse) with the file and the reason if the file can't be read, is not regular, or has more than `most`
/// bytes.
file_text read_file(const std::filesystem::path& file, std::size_t most);

/// A text that holds a private key. The destructor wipes it.
struct secret_text {
  std::string text;

  explicit secret_text(std::string what) noexcept : text(std::move(what)) {}
  ~secret_text();
  secret_text(secret_text&&) noexcept = default;
};

/// As read_file(). Throws too if others than this process's user and root can change the file, or can read the private key in it.
secret_text read_secret(const std::filesystem::path& file, std::size_t most);

}  // namespace troupe::certificates
