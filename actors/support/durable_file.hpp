// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/support/durable_file_test.cpp, tests/actors/support/checksum_test.cpp
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <troupe/actors/support/open_folder.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::support {

/// The name of the checksum in manifests and messages: XXH3 with 64 bits.
inline constexpr auto checksum_name = "xxh3_64";

/// Throws troupe::error (misuse) unless `name` is checksum_name.
void expect_checksum_name(const std::string& name);

/// A checksum of bytes. It detects damage, not forgery, and does not depend on how the bytes are cut into updates.
class checksum {
 public:
  checksum();
  ~checksum();

  void update(const void* data, std::size_t size) noexcept;
  std::uint64_t value() const noexcept;

 private:
  struct state;

  std::unique_ptr<state> state_;
};

struct file_digest {
  std::uint64_t bytes = 0;
  std::uint64_t sum = 0;

  bool operator==(const file_digest&) const = default;

  /// The digest of a file. Throws troupe::error with the path and the reason if the file can't be read.
  static file_digest of(const file_location& location);
  /// The digest of an open file, whose name is `text` in errors.
  static file_digest of(const owned_descriptor& file, const std::string& text);
};

/// A file that appears under its name complete or not at all.
///   DF-1  if commit() throws or is not called, the file at `location` is as before.
///   DF-2  when commit() has returned, the bytes survive a loss of power.
///   DF-3  the destructor leaves no other file beside `location`.
class durable_file {
 public:
  /// Opens a temporary file beside `location`. `mode`: who may read and write it, as for open(2). Throws troupe::error.
  explicit durable_file(file_location location, mode_t mode = open_folder::usual_mode);
  ~durable_file();

  /// Writes bytes. Never throws: after a failure bytes are dropped, and commit() reports the failure.
  void write(const void* data, std::size_t size) noexcept;

  /// Renames the temporary file to `location`. `replaces`: whether `location` may be replaced if there is a file by now. Throws
  /// troupe::error with the path and the reason if a byte could not be written, or if there is a file that must not be
  /// replaced.
  file_digest commit(bool replaces = true);

 private:
  [[noreturn]] void fail(const char* action, int reason);

  file_location location_;
  file_location partial_;
  owned_descriptor descriptor_;
  int failure_ = 0;
  std::uint64_t bytes_ = 0;
  checksum sum_;
};

}  // namespace troupe::support
