// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/checkpoint.hpp>

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <troupe/messages/errors.hpp>

namespace troupe::objects {

namespace {

namespace fs = std::filesystem;

std::string megabytes(std::uint64_t bytes) { return std::to_string((bytes + 999'999) / 1'000'000) + " MB"; }

[[noreturn]] void not_writable(const std::string& folder, const std::string& there, int reason) {
  const auto at = there == folder || there.empty() ? "" : " in '" + there + "'";
  throw error(errc::function_failed, "expected to write checkpoints to the folder '" + folder + "', but no file can be made" +
                                       at + ": " + std::generic_category().message(reason) +
                                       "; give the program the right to write there, or name another folder");
}

/// The folder itself, or the first folder above it that exists.
fs::path existing_folder(const fs::path& folder) {
  std::error_code failed;
  auto there = folder;
  while (!fs::exists(there, failed) && there.has_relative_path()) there = there.parent_path();
  return there;
}

support::open_folder opened(const fs::path& folder, const fs::path& there) {
  if (const support::owned_descriptor found(::open(there.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); !found)
    not_writable(folder, there, errno);
  return support::open_folder(there, there);
}

}  // namespace

void expect_room(const std::string& folder, std::uint64_t bytes) {
  const auto path = fs::absolute(folder).lexically_normal();
  expect_room(path, opened(path, existing_folder(path)), bytes);
}

void expect_room(const std::string& folder, const support::open_folder& there, std::uint64_t bytes) {
  const auto probe = ".room." + new_save_id();
  if (!there.create(probe)) not_writable(folder, there.text(), errno);
  there.remove(probe);
  const auto room = there.room();
  if (!room || *room >= bytes) return;
  throw error(errc::function_failed, "expected room for " + megabytes(bytes) + " of checkpoints in the folder '" + folder +
                                       "', but there are only " + megabytes(*room) +
                                       "; make room on the disk, or name another folder");
}

}  // namespace troupe::objects
