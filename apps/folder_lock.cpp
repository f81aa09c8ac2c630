// SPDX-License-Identifier: BSD-3-Clause
#include "apps/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace troupe::apps {

folder_lock::folder_lock(const std::filesystem::path& folder, const std::string& otherwise) : name_(folder / ".lock") {
  do {
    lock(folder, otherwise);
  } while (!holds());
}

void folder_lock::lock(const std::string& folder, const std::string& otherwise) {
  const auto opened = [&](int more) {
    file_ = support::owned_descriptor(::open(name_.c_str(), more | O_RDWR | O_CLOEXEC, 0644));
    return bool{file_};
  };
  const bool is_new = opened(O_CREAT | O_EXCL);
  if (!is_new && errno == EEXIST && !opened(O_NOFOLLOW) && errno == ENOENT) return;  // its owner has just removed the file
  if (!file_)
    throw std::runtime_error("expected to write to the folder " + folder + ", but: " + std::strerror(errno) + "; mend that" +
                             otherwise);
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK)
    throw std::runtime_error("another run is writing to the folder " + folder + "; wait for its end" + otherwise);
  // Without locks, the process that has made the file owns the folder.
  if (!is_new)
    throw std::runtime_error("the file system of the folder " + folder + " has no locks (flock: " + std::strerror(errno) +
                             "), and " + name_ +
                             " is there: another run is writing to the folder, or was killed; wait for its end, remove that "
                             "file if no run is there" +
                             otherwise);
}

// True if the locked file is still the one in the folder. An earlier process may have removed the file after this process
// opened it and before the lock; other processes would then lock another file.
bool folder_lock::holds() const {
  struct stat mine {};
  struct stat there {};
  return ::fstat(file_.get(), &mine) == 0 && ::stat(name_.c_str(), &there) == 0 && mine.st_ino == there.st_ino &&
         mine.st_dev == there.st_dev;
}

void folder_lock::remove() const noexcept { ::unlink(name_.c_str()); }

}  // namespace troupe::apps
