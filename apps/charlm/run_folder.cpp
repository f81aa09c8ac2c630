// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/run_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <troupe/actors/durable_file.hpp>

namespace troupe::apps::charlm {

namespace fs = std::filesystem;

namespace {

constexpr std::array files_of_a_run{"metrics.jsonl", "summary.json", "loss.svg", "trace.json", "checkpoint"};

}  // namespace

run_folder::run_folder(fs::path path) : path_(std::move(path)) {
  std::error_code failure;
  fs::create_directories(path_, failure);
  if (!fs::is_directory(path_))
    throw std::runtime_error("expected a folder to write to at " + path_.string() + ", but it can't be made: " +
                             (failure ? failure.message() : std::string("a file is in its place")) + "; name another with --out");
  const auto name = path_ / ".lock";
  lock_ = ::open(name.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock_ < 0)
    throw std::runtime_error("expected to write to the folder " + path_.string() + ", but: " + std::strerror(errno) +
                             "; name another with --out");
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock_);
    throw std::runtime_error("another run is writing to the folder " + path_.string() + "; wait for its end, or name another with --out");
  }
}

run_folder::~run_folder() {
  std::error_code ignored;
  fs::remove(path_ / ".lock", ignored);
  ::close(lock_);
}

bool run_folder::has_checkpoint() const { return fs::exists(fs::path(checkpoint()) / "checkpoint.json"); }

void run_folder::expect_room(std::uintmax_t bytes) const {
  std::error_code failure;
  const auto room = fs::space(path_, failure).available;
  if (failure || room >= bytes)
    return;
  const auto megabytes = [](std::uintmax_t n) { return std::to_string((n + 999'999) / 1'000'000) + " MB"; };
  throw std::runtime_error("expected room for " + megabytes(bytes) + " in the folder " + path_.string() + ", but there are only " +
                           megabytes(room) + " (no space left on the device); free some, or name another folder with --out");
}

std::optional<std::string> run_folder::set_aside() {
  bool any = false;
  for (const auto* name : files_of_a_run)
    any = any || fs::exists(path_ / name);
  if (!any)
    return {};
  const auto previous = path_ / "previous";
  fs::create_directories(previous);
  for (const auto* name : files_of_a_run) {
    fs::remove_all(previous / name);
    if (fs::exists(path_ / name))
      fs::rename(path_ / name, previous / name);
  }
  return previous.string();
}

void write_whole_file(const std::string& path, const std::string& content) {
  durable_file file{path};
  file.write(content.data(), content.size());
  file.commit();
}

}  // namespace troupe::apps::charlm
