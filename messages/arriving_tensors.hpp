// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <c10/core/Storage.h>
#include <caf/byte.hpp>
#include <caf/fwd.hpp>
#include <caf/span.hpp>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/tensor_memory.hpp>

namespace troupe {

struct memory_mark;
struct tensor_offer;
struct tensor_piece;

/// The elements of large tensors, which arrive in pieces ahead of the messages that hold the tensors. Reading a tensor_piece
/// adds to it, `read` adds what a tensor_offer offers, reading the message takes from it. Safe from any thread.
///   AT-1  a transfer holds no more memory than came or was read for it, whatever it announces.
///   AT-2  only what came without a gap, from its first byte to its last, is handed out.
///   AT-3  of a transfer that a piece does not fit nothing is left.
class arriving_tensors {
 public:
  /// Smaller pieces are refused unless they end a transfer, smaller transfers altogether: each has a page at least.
  static constexpr std::uint64_t least_bytes = 4096;

  /// Takes what a piece brought: the first byte of a transfer begins it (anew), a total of 0 drops it. Null, or what is wrong.
  const char* add(const tensor_piece& about, caf::span<const caf::byte> elements);

  /// More than that at once is refused: each offer is a message, so memory grows no faster than messages come.
  static constexpr std::uint64_t most_offered = std::uint64_t{16} << 20;

  /// Reads what is offered out of the sender's memory, on this thread, while others may go on; none, or what is wrong: `refused`
  /// where nothing of that process can be read.
  std::optional<error> read(const tensor_offer& offer, const memory_mark& given);

  /// The elements of a transfer, which is over then; none if it is not whole or not of that size.
  c10::Storage take(node_id from, std::uint64_t transfer, std::uint64_t bytes);

  /// Of a node that is gone.
  void drop(node_id from);

  /// That came and were not taken.
  std::uint64_t bytes() const;

 private:
  struct arrival {
    c10::Storage elements;
    std::uint64_t total = 0;
    std::uint64_t came = 0;
  };
  using key = std::pair<std::uint64_t, std::uint64_t>;  // sender and number
  struct extent {
    std::uint64_t total;
    std::uint64_t offset;
    std::uint64_t bytes;
  };

  // Where a piece goes; null, or what is wrong, and then nothing is left of the transfer.
  const char* find_place(const key& which, const extent& piece, arrival*& place);
  const char* refuse(const key& which, const char* why);

  mutable std::mutex mutex_;
  tensor_memory memory_;
  std::map<key, arrival> arrivals_;
};

/// What the configuration of an actor system derives from if the system takes tensors in pieces.
class takes_tensors {
 public:
  virtual ~takes_tensors() = default;
  arriving_tensors& arriving() const noexcept { return arriving_; }

 private:
  mutable arriving_tensors arriving_;  // a system hands out its configuration as const
};

/// Those of the actor system that reads; null if it takes none.
arriving_tensors* arriving_at(caf::deserializer& source) noexcept;

}  // namespace troupe
