// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/durable_file.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

// All of xxHash's functions are inline here, so an installed troupe needs no xxHash library.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <troupe/messages/errors.hpp>

namespace troupe::support {

namespace {

constexpr auto xxh3_text = "xxh3_64";
constexpr auto format_1_text = "format_1";

std::string reason_text(int reason) { return std::generic_category().message(reason); }

}  // namespace

class checksum::algorithm {
 public:
  virtual ~algorithm() = default;
  virtual void update(const void* data, std::size_t size) noexcept = 0;
  virtual std::uint64_t value() const noexcept = 0;
};

class checksum::xxh3 final : public algorithm {
 public:
  xxh3() { XXH3_64bits_reset(&state_); }
  void update(const void* data, std::size_t size) noexcept override { XXH3_64bits_update(&state_, data, size); }
  std::uint64_t value() const noexcept override { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

class checksum::format_1 final : public algorithm {
 public:
  void update(const void* data, std::size_t size) noexcept override {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (; size > 0 && length_ % 8 != 0; --size) {
      pending_ |= std::uint64_t{*bytes++} << (length_++ % 8 * 8);
      if (length_ % 8 == 0) mix(std::exchange(pending_, 0));
    }
    for (; size >= 8; size -= 8, bytes += 8, length_ += 8) {
      std::uint64_t word;
      std::memcpy(&word, bytes, 8);
      mix(word);
    }
    for (; size > 0; --size) pending_ |= std::uint64_t{*bytes++} << (length_++ % 8 * 8);
  }

  std::uint64_t value() const noexcept override {
    std::uint64_t result = (state_ ^ pending_) * 0x9fb21c651e98df25ULL;
    result = (result ^ (result >> 32) ^ length_) * 0xd6e8feb86659fd93ULL;
    return result ^ (result >> 32);
  }

 private:
  void mix(std::uint64_t word) noexcept {
    state_ = (state_ ^ word) * 0x9fb21c651e98df25ULL;
    state_ ^= state_ >> 32;
  }

  std::uint64_t state_ = 0x9ae16a3b2f90404fULL;
  std::uint64_t pending_ = 0;  // bytes of a word that is not whole yet, lowest first
  std::uint64_t length_ = 0;
};

std::string to_text(checksum_kind kind) { return kind == checksum_kind::xxh3 ? xxh3_text : format_1_text; }

checksum_kind checksum_kind_named(const std::string& text) {
  for (const auto kind : {checksum_kind::xxh3, checksum_kind::format_1})
    if (to_text(kind) == text) return kind;
  throw error(errc::misuse,
              std::string("expected a checksum of kind ") + xxh3_text + " or " + format_1_text + ", got '" + text + "'");
}

checksum::checksum(checksum_kind kind) {
  if (kind == checksum_kind::xxh3)
    algorithm_ = std::make_unique<xxh3>();
  else
    algorithm_ = std::make_unique<format_1>();
}

checksum::~checksum() = default;

void checksum::update(const void* data, std::size_t size) noexcept { algorithm_->update(data, size); }

std::uint64_t checksum::value() const noexcept { return algorithm_->value(); }

file_digest file_digest::of(const file_place& place, checksum_kind kind) { return of(place.read(), place.text(), kind); }

file_digest file_digest::of(const owned_descriptor& file, const std::string& text, checksum_kind kind) {
  std::vector<char> chunk(std::size_t{1} << 20);
  file_digest result{0, 0, kind};
  checksum sum(kind);
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

durable_file::durable_file(file_place place, mode_t mode)
    : place_(std::move(place)), partial_(place_.with(".part")), descriptor_(partial_.create(mode)) {
  if (!descriptor_) throw error(errc::function_failed, "can't create '" + place_.text() + "': " + reason_text(errno));
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
  if (!partial_.rename_to(place_, replaces)) fail("rename the finished file to", errno);
  place_.sync_folder();  // the new name survives a loss of power only once the folder is on the disk
  return {bytes_, sum_.value()};
}

void durable_file::fail(const char* action, int reason) {
  descriptor_ = {};
  partial_.remove();
  std::string advice = reason == ENOSPC || reason == EDQUOT ? "; make room on the disk or name another folder" : "";
  throw error(errc::function_failed,
              std::string("can't ") + action + " '" + place_.text() + "': " + reason_text(reason) + advice);
}

}  // namespace troupe::support
