// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/part_pieces.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>

#include <troupe/messages/errors.hpp>

namespace troupe::objects {

namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 48;  // more is a mistake, not a part

[[noreturn]] void refuse(const std::string& text) { throw error(errc::misuse, "optimizer: " + text); }

at::Tensor range_of(const at::Tensor& bytes, std::uint64_t offset, std::uint64_t size) {
  return bytes.narrow(0, static_cast<std::int64_t>(offset), static_cast<std::int64_t>(size));
}

}  // namespace

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
