// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/charlm/run_folder_test.cpp, tests/apps/weights_test.cpp
#pragma once

#include <filesystem>
#include <string>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::apps {

/// The right to write to a folder of a run: a lock on the file `.lock` in the folder.
///   FO-1  one process at a time has it: a second process throws std::runtime_error. On a file system without locks (flock), a
///         folder with a file `.lock` counts as used, even after a process that was killed.
class folder_lock {
 public:
  /// `otherwise`: what else the user may do, for errors, as in ", or name another folder".
  folder_lock(const std::filesystem::path& folder, const std::string& otherwise);
  ~folder_lock() { remove(); }
  folder_lock(const folder_lock&) = delete;
  folder_lock& operator=(const folder_lock&) = delete;

  /// Removes the file `.lock`: for a process that ends at once.
  void remove() const noexcept;

 private:
  void lock(const std::string& folder, const std::string& otherwise);
  bool holds() const;

  std::string name_;
  support::owned_descriptor file_;
};

}  // namespace troupe::apps
