// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/open_folder.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <troupe/actors/support/refused_request.hpp>

namespace troupe::support {

namespace {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

[[noreturn]] void fail(const char* what, const std::string& text, int reason, const char* advice = "") {
  throw error(errc::function_failed,
              std::string(what) + " '" + text + "': " + std::generic_category().message(reason) + advice);
}

[[noreturn]] void refuse_link(const std::string& text) {
  throw refused_request("'" + text + "' is a symbolic link, and links are not followed; name a path without links");
}

/// Renames a file. Some file systems can't refuse to replace a file: they replace a file that came after the caller has looked,
/// even without `replaces`.
bool renamed(int folder, const std::string& from, const std::string& to, bool replaces) noexcept {
  if (!replaces && ::renameat2(folder, from.c_str(), folder, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (!replaces && errno != EINVAL && errno != ENOSYS) return false;
  return ::renameat(folder, from.c_str(), folder, to.c_str()) == 0;
}

bool fails_unless_plain(const std::string& name) noexcept {
  if (is_plain_name(name)) return false;
  errno = EINVAL;
  return true;
}

}  // namespace

bool is_plain_name(const std::string& name) noexcept {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

open_folder::open_folder(const std::string& path, std::string text)
    : open_folder(owned_descriptor(::open(path.c_str(), folder_flags)), std::move(text)) {
  if (!*folder_) fail("can't open the folder", text_, errno);
}

open_folder::open_folder(owned_descriptor folder, std::string text)
    : folder_(std::make_shared<const owned_descriptor>(std::move(folder))), text_(std::move(text)) {}

bool open_folder::is_link(const std::string& name) const noexcept {
  struct stat found {};
  return !fails_unless_plain(name) && ::fstatat(descriptor(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISLNK(found.st_mode);
}

std::optional<open_folder> open_folder::find(const std::string& name) const {
  const auto text = text_of(name);
  if (fails_unless_plain(name)) fail("can't open the folder", text, errno);
  owned_descriptor found(::openat(descriptor(), name.c_str(), folder_flags | O_NOFOLLOW));
  if (found) return open_folder(std::move(found), text);
  const int reason = errno;
  if (reason == ENOENT) return {};
  if (is_link(name)) refuse_link(text);  // errno is ENOTDIR or ELOOP for a link
  fail("can't open the folder", text, reason, "; name another folder");
}

open_folder open_folder::find_or_make(const std::string& name) const {
  if (auto found = find(name)) return std::move(*found);
  if (::mkdirat(descriptor(), name.c_str(), 0777) != 0 && errno != EEXIST)
    fail("can't make the folder", text_of(name), errno, "; give the program the right to write there, or name another folder");
  if (auto made = find(name)) return std::move(*made);
  fail("can't make the folder", text_of(name), ENOENT);
}

std::vector<std::string> open_folder::names() const {
  const int again = ::openat(descriptor(), ".", folder_flags);  // a descriptor with a position of its own
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(again < 0 ? nullptr : ::fdopendir(again), &::closedir);
  if (!entries) {
    const int reason = errno;
    const owned_descriptor unused(again);
    fail("can't read the folder", text_, reason);
  }
  std::vector<std::string> all;
  while (const auto* entry = ::readdir(entries.get()))  // NOLINT(concurrency-mt-unsafe): no other thread has `entries`
    if (is_plain_name(entry->d_name)) all.emplace_back(entry->d_name);
  return all;
}

owned_descriptor open_folder::read(const std::string& name) const noexcept {
  if (fails_unless_plain(name)) return {};
  // A pipe without O_NONBLOCK would hold this thread up.
  owned_descriptor file(::openat(descriptor(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat found {};
  if (!file || ::fstat(file.get(), &found) != 0) return {};
  if (S_ISREG(found.st_mode)) return file;
  file = {};
  errno = S_ISDIR(found.st_mode) ? EISDIR : EINVAL;
  return {};
}

owned_descriptor open_folder::create(const std::string& name, mode_t mode) const noexcept {
  if (fails_unless_plain(name)) return {};
  ::unlinkat(descriptor(), name.c_str(), 0);  // an earlier process may have left a file of this name
  return owned_descriptor(::openat(descriptor(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
}

bool open_folder::rename(const std::string& from, const std::string& to, bool replaces) const noexcept {
  return !fails_unless_plain(from) && !fails_unless_plain(to) && renamed(descriptor(), from, to, replaces);
}

void open_folder::remove(const std::string& name) const noexcept {
  if (!fails_unless_plain(name)) ::unlinkat(descriptor(), name.c_str(), 0);
}

void open_folder::sync() const noexcept { ::fsync(descriptor()); }

std::optional<std::uint64_t> open_folder::free_space() const noexcept {
  struct statvfs found {};
  if (::fstatvfs(descriptor(), &found) != 0) return {};
  return std::uint64_t{found.f_bavail} * found.f_frsize;
}

file_location file_location::with(const std::string& suffix) const {
  auto result = *this;
  result.name_ += suffix;
  return result;
}

std::string file_location::text() const { return folder_ ? folder_->text_of(name_) : name_; }

owned_descriptor file_location::read() const {
  auto file = folder_ ? folder_->read(name_) : owned_descriptor(::open(name_.c_str(), O_RDONLY | O_CLOEXEC));
  const int reason = errno;
  if (file) return file;
  if (folder_ && reason == ELOOP) refuse_link(text());
  fail("can't read", text(), reason);
}

owned_descriptor file_location::create(mode_t mode) const noexcept {
  if (folder_) return folder_->create(name_, mode);
  if (mode == open_folder::usual_mode)
    return owned_descriptor(::open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  // A secret goes into a new file: another user may own a file of this name, hold it open, or have put a link there.
  ::unlink(name_.c_str());
  return owned_descriptor(::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
}

bool file_location::rename_to(const file_location& other, bool replaces) const noexcept {
  if (folder_) return folder_->rename(name_, other.name_, replaces);
  return renamed(AT_FDCWD, name_, other.name_, replaces);
}

void file_location::remove() const noexcept { folder_ ? folder_->remove(name_) : static_cast<void>(::unlink(name_.c_str())); }

void file_location::sync_folder() const noexcept {
  if (folder_) return folder_->sync();
  const auto folder = std::filesystem::path(name_).parent_path().string();
  const owned_descriptor opened(::open(folder.empty() ? "." : folder.c_str(), folder_flags));
  if (opened) ::fsync(opened.get());
}

}  // namespace troupe::support
