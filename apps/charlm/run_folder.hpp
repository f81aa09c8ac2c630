// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe::apps::charlm {

/// The folder of a run and the names in it.
///   RF-1  one process at a time has it: a second one throws std::runtime_error.
///   RF-2  set_aside loses nothing of the run that was there: its files are moved to `previous/`, in place of those of the run
///         before it. A run without a checkpoint goes to `unfinished/` instead, so that no failed start costs a run that has
///         one. Files that no run writes are left alone.
///   RF-3  what can't be made, written or has too little room throws std::runtime_error with the folder and the reason.
class run_folder {
 public:
  /// Makes the folder if needed and takes it.
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

  /// Removes what a process that ends at once would leave: the lock, and files that are half written.
  void abandon() const noexcept;

  /// Throws unless that many bytes can still be written.
  void expect_room(std::uintmax_t bytes) const;

  struct set_aside_run {
    std::string where;      // its files are now
    bool replaced = false;  // those of a run before it, which was there
  };
  /// Moves an earlier run's files out of the way; returns nothing if there were none.
  std::optional<set_aside_run> set_aside();

 private:
  std::string lock_name() const { return path_ / ".lock"; }
  void take();
  bool holds();

  std::filesystem::path path_;
  int lock_ = -1;
};

/// Writes a file so that it is there whole or not at all.
void write_whole_file(const std::string& path, const std::string& content);

}  // namespace troupe::apps::charlm
