// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "apps/folder_lock.hpp"

namespace troupe::apps::charlm {

/// The folder of a run, and the names of its files.
///   RF-1  one process at a time may use the folder (FO-1).
///   RF-2  set_aside() moves all files of a run to a new folder, `previous-1/`, `previous-2/` and so on, so nothing of a run is
///         lost. Files that no run writes are left alone, also by remove_run().
///   RF-3  a folder that cannot be made, cannot be written or has too little space throws std::runtime_error with the folder
///         and the reason.
class run_folder {
 public:
  /// Creates the folder if needed, and locks it for this process.
  explicit run_folder(std::filesystem::path path);

  const std::filesystem::path& path() const noexcept { return path_; }
  std::string metrics() const { return path_ / "metrics.jsonl"; }
  std::string summary() const { return path_ / "summary.json"; }
  std::string chart() const { return path_ / "loss.svg"; }
  std::string trace() const { return path_ / "trace.json"; }
  std::string checkpoint() const { return path_ / "checkpoint"; }

  bool has_checkpoint() const;

  /// Removes the lock and half-written files, for a process that is about to end without destructors.
  void abandon() const noexcept;

  /// Throws if the folder has no space for `bytes` more bytes.
  void expect_disk_space(std::uintmax_t bytes) const;

  /// Moves the files of an earlier run out of the way. Returns the folder to which they were moved; empty if there were none.
  std::optional<std::string> set_aside() const;
  /// Removes the files of an earlier run. Returns whether there were any.
  bool remove_run() const;

 private:
  std::filesystem::path path_;
  folder_lock lock_;
};

/// Writes a file. Afterwards the file has all of `content`, or it was not changed.
void write_whole_file(const std::string& path, const std::string& content);

}  // namespace troupe::apps::charlm
