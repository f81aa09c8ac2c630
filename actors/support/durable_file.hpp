// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include <troupe/actors/support/checksum.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::support {

/// Size and checksum of a file.
struct file_digest {
  std::uint64_t bytes = 0;
  std::uint64_t sum = 0;
  checksum_kind kind = checksum_kind::xxh3;

  bool operator==(const file_digest&) const = default;

  /// The digest of the file at `path`. Throws troupe::error with the path and the reason if the file can't be read.
  static file_digest of(const std::string& path, checksum_kind kind = checksum_kind::xxh3);
};

/// A file that appears under its name complete or not at all.
///   DF-1  if commit() throws or is not called, the file at `path` is as before.
///   DF-2  when commit() has returned, the bytes survive a loss of power.
///   DF-3  the destructor leaves no other file beside `path`.
class durable_file {
 public:
  static constexpr mode_t usual_mode = 0666;  // less what the process's umask takes away

  /// Opens a temporary file beside `path`. `mode`: who may read and write it, as for open(2). Throws troupe::error.
  explicit durable_file(std::string path, mode_t mode = usual_mode);
  ~durable_file();
  durable_file(const durable_file&) = delete;
  durable_file& operator=(const durable_file&) = delete;

  /// Writes bytes. Never throws: after a failure bytes are dropped, and commit() reports the failure.
  void write(const void* data, std::size_t size) noexcept;

  /// Renames the temporary file to `path`. Throws troupe::error with the path and the reason if a byte could not be written.
  file_digest commit();

 private:
  [[noreturn]] void fail(const char* action, int reason);

  std::string path_;
  std::string partial_;
  owned_descriptor descriptor_;
  int failure_ = 0;
  std::uint64_t bytes_ = 0;
  checksum sum_;
};

}  // namespace troupe::support
