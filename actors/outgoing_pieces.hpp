// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/messages/messages.hpp>

namespace troupe {

/// Large tensors on their way to one node: their elements leave in pieces, ahead of the message that holds them. Sender and
/// receiver work at the same time then, each on what its cache still holds, and small messages need not wait.
///   OP-1  a message follows when the last of its pieces has left, and messages follow in the order in which they were added.
///   OP-2  at most `window` pieces are on their way that the receiver has not taken.
///   OP-3  a tensor that is there twice leaves once.
class outgoing_pieces {
 public:
  static constexpr std::uint64_t piece_bytes = std::uint64_t{256} << 10;
  static constexpr int window = 4;
  /// Parts of tensors with fewer bytes go with their message.
  static constexpr std::uint64_t large_bytes = 2 * piece_bytes;

  /// Whether any of these is large.
  static bool any_large(const std::vector<at::Tensor>& tensors);

  using send_message = std::function<void()>;
  /// The large parts of the tensors, then `send`. Fills `ahead`, whose sender is set, with numbers from `last` + 1 on.
  void add(const std::vector<at::Tensor>& tensors, sent_ahead& ahead, std::uint64_t& last, send_message send);

  /// What may leave now: a piece, or a message; nothing until a piece is taken or a message added.
  std::optional<std::variant<tensor_piece, send_message>> next();
  /// The receiver has taken a piece.
  void taken() { --under_way_; }
  /// All have left and were taken.
  bool empty() const { return queue_.empty() && under_way_ == 0; }

 private:
  struct transfer {
    node_id from;
    std::uint64_t number;
    at::Tensor form;
  };
  using entry = std::variant<transfer, send_message>;

  std::deque<entry> queue_;
  std::uint64_t offset_ = 0;  // of the next piece of the first
  int under_way_ = 0;
};

}  // namespace troupe
