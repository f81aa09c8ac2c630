// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::apps::charlm {

/// The folder of a run, and the names of its files.
///   RF-1  one process at a time may use the folder: a second process throws std::runtime_error.
///   RF-2  set_aside loses nothing of the earlier run: the run's files move to `previous/` and replace those of the run before
///         it. The files of a run without a checkpoint move to `unfinished/` instead, so a failed start never replaces a run
///         with a checkpoint. Files that no run writes are left alone.
///   RF-3  a folder that cannot be made, cannot be written or has too little room throws std::runtime_error with the folder
///         and the reason.
class run_folder {
 public:
  /// Creates the folder if needed, and locks it for this process.
  explicit run_folder(std::filesystem::path path);
  ~run_folder();
  run_folder(const run_folder&) = delete;
  run_folder& operator=(const run_folder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::string metrics() const { return path_ / "metrics.jsonl"; }
  std::string summary() const { return path_ / "summary.json"; }
  std::string chart() const { return path_ / "loss.svg"; }
  std::string trace() const { return path_ / "trace.json"; }
  std::string checkpoint() const { return path_ / "checkpoint"; }

  bool has_checkpoint() const;

  /// Removes what a process leaves behind if it ends at once: the lock, and half-written files.
  void abandon() const noexcept;

  /// Throws unless `bytes` more bytes can be written.
  void expect_room(std::uintmax_t bytes) const;

  struct set_aside_run {
    std::string where;      // where the files of the earlier run are now
    bool replaced = false;  // true if they have replaced the files of a run before it
  };
  /// Moves the files of an earlier run out of the way. Returns nothing if there were none.
  std::optional<set_aside_run> set_aside();

 private:
  std::string lock_name() const { return path_ / ".lock"; }
  void lock();
  bool holds();

  std::filesystem::path path_;
  support::owned_descriptor lock_;
};

/// Writes a file so that either the whole file is there or nothing.
void write_whole_file(const std::string& path, const std::string& content);

}  // namespace troupe::apps::charlm
