// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/durable_file.hpp>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/messages/errors.hpp>

namespace troupe::support {

namespace {

std::string reason_text(int reason) { return std::generic_category().message(reason); }

}  // namespace

file_digest file_digest::of(const std::string& path, checksum_kind kind) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (!file) throw error(errc::function_failed, "can't read '" + path + "': " + reason_text(errno));
  std::vector<char> chunk(std::size_t{1} << 20);
  file_digest result{0, 0, kind};
  checksum sum(kind);
  while (const std::size_t got = std::fread(chunk.data(), 1, chunk.size(), file.get())) {
    sum.update(chunk.data(), got);
    result.bytes += got;
  }
  if (std::ferror(file.get()) != 0) throw error(errc::function_failed, "can't read '" + path + "': " + reason_text(errno));
  result.sum = sum.value();
  return result;
}

durable_file::durable_file(std::string path, mode_t mode) : path_(std::move(path)), partial_(path_ + ".part") {
  descriptor_ = owned_descriptor(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!descriptor_) throw error(errc::function_failed, "can't create '" + path_ + "': " + reason_text(errno));
  if (mode != usual_mode) ::fchmod(descriptor_.get(), mode);  // a temporary file of an earlier process may be readable by more
}

durable_file::~durable_file() {
  if (!descriptor_) return;
  descriptor_ = {};
  ::unlink(partial_.c_str());
}

void durable_file::write(const void* data, std::size_t size) noexcept {
  if (failure_ != 0) return;
  sum_.update(data, size);
  bytes_ += size;
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor_.get(), next, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      failure_ = written < 0 ? errno : ENOSPC;
      return;
    }
    next += written;
    size -= static_cast<std::size_t>(written);
  }
}

file_digest durable_file::commit() {
  if (failure_ == 0 && ::fsync(descriptor_.get()) != 0) failure_ = errno;
  if (failure_ != 0) fail("write", failure_);
  descriptor_ = {};
  if (std::rename(partial_.c_str(), path_.c_str()) != 0) fail("rename the finished file to", errno);
  // The new name survives a loss of power only once the folder is on the disk.
  std::string folder = std::filesystem::path(path_).parent_path().string();
  const owned_descriptor opened(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened) ::fsync(opened.get());
  return {bytes_, sum_.value()};
}

void durable_file::fail(const char* action, int reason) {
  descriptor_ = {};
  ::unlink(partial_.c_str());
  std::string advice = reason == ENOSPC || reason == EDQUOT ? "; make room on the disk or name another folder" : "";
  throw error(errc::function_failed, std::string("can't ") + action + " '" + path_ + "': " + reason_text(reason) + advice);
}

}  // namespace troupe::support
