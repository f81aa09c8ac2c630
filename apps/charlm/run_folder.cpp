// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/run_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <troupe/actors/support/durable_file.hpp>

namespace troupe::apps::charlm {

namespace fs = std::filesystem;

constexpr std::array files_of_a_run{"metrics.jsonl", "summary.json", "loss.svg", "trace.json", "checkpoint"};

run_folder::run_folder(fs::path path) : path_(std::move(path)) {
  std::error_code failure;
  fs::create_directories(path_, failure);
  if (!fs::is_directory(path_))
    throw std::runtime_error("expected a folder to write to at " + path_.string() + ", but it can't be made: " +
                             (failure ? failure.message() : std::string("a file is in its place")) +
                             "; name another with --out");
  do {
    lock();
  } while (!holds());
}

void run_folder::lock() {
  const auto opened = [&](int more) {
    lock_ = support::owned_descriptor(::open(lock_name().c_str(), more | O_RDWR | O_CLOEXEC, 0644));
    return bool{lock_};
  };
  const bool is_new = opened(O_CREAT | O_EXCL);
  if (!is_new && errno == EEXIST && !opened(O_NOFOLLOW) && errno == ENOENT) return;  // an earlier run has just removed the file
  if (!lock_)
    throw std::runtime_error("expected to write to the folder " + path_.string() + ", but: " + std::strerror(errno) +
                             "; name another with --out");
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK)
    throw std::runtime_error("another run is writing to the folder " + path_.string() +
                             "; wait for its end, or name another with --out");
  // If the file system has no locks, the process that made the lock file owns the folder.
  if (!is_new)
    throw std::runtime_error(
      "the file system of the folder " + path_.string() + " has no locks (flock: " + std::strerror(errno) + "), and " +
      lock_name() +
      " is there: another run is writing to the folder, or was killed; wait for its end, remove that file "
      "if no run is there, or name another folder with --out");
}

// True if the locked file is the lock file that is in the folder now. An earlier run may have removed the file after this
// process opened it and before this process locked it. Another process would then make and lock a new file.
bool run_folder::holds() {
  struct stat mine {};
  struct stat there {};
  return ::fstat(lock_.get(), &mine) == 0 && ::stat(lock_name().c_str(), &there) == 0 && mine.st_ino == there.st_ino &&
         mine.st_dev == there.st_dev;
}

run_folder::~run_folder() { ::unlink(lock_name().c_str()); }

void run_folder::abandon() const noexcept {
  std::error_code ignored;
  for (const auto& folder : {path_, fs::path(checkpoint())})
    for (fs::directory_iterator each(folder, ignored), end; !ignored && each != end; each.increment(ignored))
      if (each->path().extension() == ".part") ::unlink(each->path().c_str());
  ::unlink(lock_name().c_str());
}

bool run_folder::has_checkpoint() const { return fs::exists(fs::path(checkpoint()) / "checkpoint.json"); }

void run_folder::expect_room(std::uintmax_t bytes) const {
  std::error_code failure;
  const auto room = fs::space(path_, failure).available;
  if (failure || room >= bytes) return;
  const auto megabytes = [](std::uintmax_t n) { return std::to_string((n + 999'999) / 1'000'000) + " MB"; };
  throw std::runtime_error("expected room for " + megabytes(bytes) + " in the folder " + path_.string() +
                           ", but there are only " + megabytes(room) +
                           " (no space left on the device); free some, or name another folder with --out");
}

std::optional<std::string> run_folder::set_aside() const {
  const auto is_here = [this](const char* name) { return fs::exists(path_ / name); };
  if (std::none_of(files_of_a_run.begin(), files_of_a_run.end(), is_here)) return {};
  fs::path aside;
  int number = 0;
  do {
    aside = path_ / ("previous-" + std::to_string(++number));
  } while (!fs::create_directory(aside));
  for (const auto* name : files_of_a_run)
    if (is_here(name)) fs::rename(path_ / name, aside / name);
  return aside.string();
}

bool run_folder::remove_run() const {
  std::uintmax_t removed = 0;
  for (const auto* name : files_of_a_run) removed += fs::remove_all(path_ / name);
  return removed > 0;
}

void write_whole_file(const std::string& path, const std::string& content) {
  support::durable_file file{path};
  file.write(content.data(), content.size());
  file.commit();
}

}  // namespace troupe::apps::charlm
