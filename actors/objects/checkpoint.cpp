// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/checkpoint.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <ATen/ops/empty.h>

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

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 48;  // more is a mistake, not a part

[[noreturn]] void refuse(const std::string& text) { throw error(errc::misuse, "optimizer: " + text); }

at::Tensor range_of(const at::Tensor& bytes, std::uint64_t offset, std::uint64_t size) {
  return bytes.narrow(0, static_cast<std::int64_t>(offset), static_cast<std::int64_t>(size));
}

}  // namespace

void expect_disk_space(const std::string& folder, std::uint64_t bytes) {
  const auto path = fs::absolute(folder).lexically_normal();
  expect_disk_space(path, opened(path, existing_folder(path)), bytes);
}

void expect_disk_space(const std::string& folder, const support::open_folder& there, std::uint64_t bytes) {
  const auto probe = ".space." + new_save_id();
  if (!there.create(probe)) not_writable(folder, there.text(), errno);
  there.remove(probe);
  const auto free = there.free_space();
  if (!free || *free >= bytes) return;
  throw error(errc::function_failed, "expected room for " + megabytes(bytes) + " of checkpoints in the folder '" + folder +
                                       "', but there are only " + megabytes(*free) +
                                       "; make room on the disk, or name another folder");
}

part_pieces part_pieces::of(std::string save, at::Tensor bytes) {
  part_pieces pieces;
  pieces.save_ = std::move(save);
  pieces.received_ = bytes.nbytes();
  pieces.bytes_ = std::move(bytes);
  return pieces;
}

at::Tensor part_pieces::piece(const std::string& save, std::uint64_t offset, std::uint64_t size) const {
  if (!bytes_.defined() || save != save_) refuse("there is no snapshot of save " + save + "; make one first");
  if (offset > received_)
    refuse("the snapshot of save " + save + " has " + std::to_string(received_) + " bytes, asked for byte " +
           std::to_string(offset));
  return range_of(bytes_, offset, std::min(size, received_ - offset));
}

void part_pieces::receive(const std::string& save, std::uint64_t offset, std::uint64_t total, const at::Tensor& piece) {
  if (total > most_bytes) refuse("a part of " + std::to_string(total) + " bytes was announced");
  if (!piece.defined() || piece.scalar_type() != at::kByte || piece.dim() != 1)
    refuse("expected the bytes of a part as a tensor of one dimension and type Byte");
  if (offset == 0) {
    save_ = save;
    bytes_ = at::empty({static_cast<std::int64_t>(total)}, at::kByte);
    received_ = 0;
  }
  if (save != save_ || offset != received_ || piece.nbytes() > bytes_.nbytes() - received_)
    refuse("expected byte " + std::to_string(received_) + " of save " + (save_.empty() ? "(none)" : save_) + ", got " +
           std::to_string(piece.nbytes()) + " bytes from byte " + std::to_string(offset) + " of save " + save +
           " on; load again");
  range_of(bytes_, offset, piece.nbytes()).copy_(piece);
  received_ += piece.nbytes();
}

at::Tensor part_pieces::take(const std::string& save) {
  if (!bytes_.defined() || save != save_ || received_ != bytes_.nbytes())
    refuse("the part of save " + save + " was not received to its end; load again");
  return std::exchange(*this, {}).bytes_;
}

}  // namespace troupe::objects
