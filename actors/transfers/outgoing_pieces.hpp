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

namespace troupe::transfers {

/// Large tensors on their way to one node, ahead of the message that holds them. The elements leave in pieces, or are offered
/// in pieces to a node that reads them out of this process's memory. So sender and receiver work at the same time, each on
/// bytes that are in its cache, and small messages leave between two pieces.
///   OP-1  a message leaves after its last piece has left or, if the pieces were offered, after the receiver has taken the last
///         piece. Messages leave in the order of add().
///   OP-2  a piece leaves while fewer than `limit` bytes in pieces have left and are not taken by the receiver yet (see next()), an
///         offer while fewer than `most_offers` offers are not answered.
///   OP-3  a tensor that a message holds twice leaves once.
///   OP-4  offered elements stay in memory until the receiver has taken or refused them, or this object is destroyed. If one
///         piece of a transfer is refused, the whole transfer leaves in pieces, after all its offers are answered.
class outgoing_pieces {
 public:
  static constexpr std::uint64_t offer_bytes = std::uint64_t{4} << 20;
  static constexpr int most_offers = 4;
  /// If the tensors of a message have more bytes than this together, large ones leave ahead of the message.
  static constexpr std::uint64_t most_together = std::uint64_t{256} << 10;
  /// Tensors with fewer bytes leave with their message.
  static constexpr std::uint64_t large_bytes = std::uint64_t{64} << 10;

  /// Whether any of these tensors leaves ahead.
  static bool any_large(const std::vector<at::Tensor>& tensors);

  using send_message = std::function<void()>;
  /// Queues the large tensors (of a sparse tensor: its large parts), and `send` after them. Each large tensor or part gets a
  /// transfer number, from `last` + 1 on; `ahead` then holds the numbers. Pre: the sender of `ahead` is set.
  void add(const std::vector<at::Tensor>& tensors, sent_ahead& ahead, std::uint64_t& last, send_message send);

  using step = std::variant<tensor_piece, tensor_offer, send_message>;
  /// The piece or message that may leave now. Empty if nothing may leave before a piece is taken or a message is added.
  /// `direct`: transfers that begin now offer their pieces; the caller then completes each offer (direct_memory::complete).
  /// `limit` and `piece_bytes`: how many bytes may be under way, and how many a piece has (see `piece_window`).
  std::optional<step> next(bool direct, std::uint64_t limit, std::uint64_t piece_bytes);
  /// How many bytes have left in pieces and are not taken by the receiver yet.
  std::uint64_t under_way() const { return under_way_; }
  /// To be called when the receiver has taken or refused a piece of so many bytes that was sent to it (not offered).
  void piece_taken(std::uint64_t bytes) { under_way_ -= bytes; }
  /// To be called when the receiver has taken an offered piece of transfer `transfer`.
  void taken(std::uint64_t transfer) { answered(transfer, true); }
  /// To be called when the receiver has refused an offered piece of transfer `transfer`.
  void refused(std::uint64_t transfer) { answered(transfer, false); }
  /// Whether all pieces have left and were taken.
  bool empty() const { return queue_.empty() && under_way_ == 0 && offers_ == 0; }

 private:
  enum class way { undecided, pieces, offers, refused };
  struct transfer {
    node_id from;
    std::uint64_t number;
    at::Tensor form;
    way how = way::undecided;
    std::uint64_t offset = 0;  // where the next piece begins
    int offered = 0;           // number of offers without an answer

    bool all_left() const { return offset == form.nbytes(); }
  };
  using entry = std::variant<transfer, send_message>;

  tensor_piece next_piece(transfer& of, std::uint64_t most_bytes);
  tensor_offer next_offer(transfer& of);
  void answered(std::uint64_t transfer, bool taken);

  std::deque<entry> queue_;
  std::uint64_t under_way_ = 0;
  int offers_ = 0;  // offers without an answer, of all transfers
};

}  // namespace troupe::transfers
