// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include <troupe/actors/support/checksum.hpp>
#include <troupe/actors/support/open_folder.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::support {

/// Size and checksum of a file.
struct file_digest {
  std::uint64_t bytes = 0;
  std::uint64_t sum = 0;
  checksum_kind kind = checksum_kind::xxh3;

  bool operator==(const file_digest&) const = default;

  /// The digest of a file. Throws troupe::error with the path and the reason if the file can't be read.
  static file_digest of(const file_place& place, checksum_kind kind = checksum_kind::xxh3);
  /// The digest of an open file, whose name is `text` in errors.
  static file_digest of(const owned_descriptor& file, const std::string& text, checksum_kind kind);
};

/// A file that appears under its name complete or not at all.
///   DF-1  if commit() throws or is not called, the file at `place` is as before.
///   DF-2  when commit() has returned, the bytes survive a loss of power.
///   DF-3  the destructor leaves no other file beside `place`.
class durable_file {
 public:
  /// Opens a temporary file beside `place`. `mode`: who may read and write it, as for open(2). Throws troupe::error.
  explicit durable_file(file_place place, mode_t mode = open_folder::usual_mode);
  ~durable_file();
  durable_file(const durable_file&) = delete;
  durable_file& operator=(const durable_file&) = delete;

  /// Writes bytes. Never throws: after a failure bytes are dropped, and commit() reports the failure.
  void write(const void* data, std::size_t size) noexcept;

  /// Renames the temporary file to `place`. `replaces`: also if there is a file by now. Throws troupe::error with the path and the reason
  /// if a byte could not be written, or if there is a file that must not be replaced.
  file_digest commit(bool replaces = true);

 private:
  [[noreturn]] void fail(const char* action, int reason);

  file_place place_;
  file_place partial_;
  owned_descriptor descriptor_;
  int failure_ = 0;
  std::uint64_t bytes_ = 0;
  checksum sum_;
};

}  // namespace troupe::support
