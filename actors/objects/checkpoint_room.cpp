// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/checkpoint_room.hpp>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::objects {

namespace {

namespace fs = std::filesystem;

std::string megabytes(std::uint64_t bytes) { return std::to_string((bytes + 999'999) / 1'000'000) + " MB"; }

[[noreturn]] void not_writable(const fs::path& folder, const fs::path& there, const std::string& reason) {
  const auto at = there == folder ? "" : " in '" + there.string() + "'";
  throw error(errc::function_failed, "expected to write checkpoints to the folder '" + folder.string() +
                                       "', but no file can be made" + at + ": " + reason +
                                       "; give the program the right to write there, or name another folder");
}

/// The folder itself, or the first folder above it that exists.
fs::path existing_folder(const fs::path& folder) {
  std::error_code failed;
  auto there = folder;
  while (!fs::exists(there, failed) && there.has_relative_path()) there = there.parent_path();
  return there;
}

}  // namespace

void expect_room(const std::string& folder, std::uint64_t bytes) {
  const auto path = fs::absolute(folder).lexically_normal();
  const auto there = existing_folder(path);
  auto probe = (there / ".room.XXXXXX").string();
  {
    const support::owned_descriptor file(::mkostemp(probe.data(), O_CLOEXEC));
    if (!file) not_writable(path, there, std::generic_category().message(errno));
    ::unlink(probe.c_str());
  }
  std::error_code failed;
  const auto room = fs::space(there, failed).available;
  if (failed || room >= bytes) return;
  throw error(errc::function_failed, "expected room for " + megabytes(bytes) + " of checkpoints in the folder '" +
                                       path.string() + "', but there are only " + megabytes(room) +
                                       "; make room on the disk, or name another folder");
}

}  // namespace troupe::objects
