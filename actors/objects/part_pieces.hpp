// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

namespace troupe::objects {

/// The bytes of a part of a checkpoint, while the part is sent in pieces to another node or is received from there. One thread
/// at a time may use it. Errors are troupe::error (misuse).
///   PP-1  take() returns bytes only when every byte was received, once and in order.
///   PP-2  bytes of another save are refused.
class part_pieces {
 public:
  part_pieces() = default;
  /// To send these bytes.
  static part_pieces of(std::string save, at::Tensor bytes);

  /// `size` bytes from `offset` on; fewer at the end. The bytes are not copied.
  at::Tensor piece(const std::string& save, std::uint64_t offset, std::uint64_t size) const;

  /// Adds bytes. With offset 0 a new part of `total` bytes begins, and what was received before is dropped.
  void receive(const std::string& save, std::uint64_t offset, std::uint64_t total, const at::Tensor& piece);
  /// The received bytes. Nothing is kept after that.
  at::Tensor take(const std::string& save);

 private:
  std::string save_;
  at::Tensor bytes_;
  std::uint64_t received_ = 0;
};

}  // namespace troupe::objects
