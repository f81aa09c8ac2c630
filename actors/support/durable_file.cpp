// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/durable_file.hpp>

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

// All of xxHash's functions are inline here, so an installed troupe needs no xxHash library.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <troupe/messages/errors.hpp>

namespace troupe::support {

namespace {

std::string reason_text(int reason) { return std::generic_category().message(reason); }

}  // namespace

void expect_checksum_name(const std::string& name) {
  if (name != checksum_name)
    throw error(errc::misuse, std::string("expected a checksum of kind ") + checksum_name + ", got '" + name + "'");
}

struct checksum::state {
  XXH3_state_t all;
};

checksum::checksum() : state_(std::make_unique<state>()) { XXH3_64bits_reset(&state_->all); }

checksum::~checksum() = default;

void checksum::update(const void* data, std::size_t size) noexcept { XXH3_64bits_update(&state_->all, data, size); }

std::uint64_t checksum::value() const noexcept { return XXH3_64bits_digest(&state_->all); }

file_digest file_digest::of(const file_location& location) { return of(location.read(), location.text()); }

file_digest file_digest::of(const owned_descriptor& file, const std::string& text) {
  std::vector<char> chunk(std::size_t{1} << 20);
  file_digest result;
  checksum sum;
  for (;;) {
    const ssize_t got = ::pread(file.get(), chunk.data(), chunk.size(), static_cast<off_t>(result.bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw error(errc::function_failed, "can't read '" + text + "': " + reason_text(errno));
    if (got == 0) break;
    sum.update(chunk.data(), static_cast<std::size_t>(got));
    result.bytes += static_cast<std::uint64_t>(got);
  }
  result.sum = sum.value();
  return result;
}

durable_file::durable_file(file_location location, mode_t mode)
    : location_(std::move(location)), partial_(location_.with(".part")), descriptor_(partial_.create(mode)) {
  if (!descriptor_) throw error(errc::function_failed, "can't create '" + location_.text() + "': " + reason_text(errno));
}

durable_file::~durable_file() {
  if (!descriptor_) return;
  descriptor_ = {};
  partial_.remove();
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

file_digest durable_file::commit(bool replaces) {
  if (failure_ == 0 && ::fsync(descriptor_.get()) != 0) failure_ = errno;
  if (failure_ != 0) fail("write", failure_);
  descriptor_ = {};
  if (!partial_.rename_to(location_, replaces)) fail("rename the finished file to", errno);
  location_.sync_folder();  // the new name survives a loss of power only once the folder is on the disk
  return {bytes_, sum_.value()};
}

void durable_file::fail(const char* action, int reason) {
  descriptor_ = {};
  partial_.remove();
  std::string advice = reason == ENOSPC || reason == EDQUOT ? "; make room on the disk or name another folder" : "";
  throw error(errc::function_failed,
              std::string("can't ") + action + " '" + location_.text() + "': " + reason_text(reason) + advice);
}

}  // namespace troupe::support
