// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include <troupe/actors/support/recent_peak.hpp>

namespace troupe::network {

/// Bytes that wait to leave by a connection, in blocks.
///   WQ-1  bytes leave in the order in which they were added.
///   WQ-2  adding a message moves at most `full_block` bytes of earlier messages, however many bytes wait.
///   WQ-3  blocks whose bytes have left are used again while the traffic stays as large. Memory that was not needed lately is
///         freed.
class write_queue {
 public:
  /// A block of this size gets no more messages.
  static constexpr std::size_t full_block = std::size_t{512} << 10;
  /// However few bytes leave, a block is freed only if its capacity is more than twice this.
  static constexpr std::size_t kept_bytes = std::size_t{64} << 10;

  /// The block at the end, to add to.
  std::vector<char>& open() noexcept { return open_; }
  /// Says that the last message is complete. A full block then gets no more messages.
  void seal();
  /// Makes the block at the end get no more messages, however few bytes it has. Pre: the last message is complete.
  void close_block();
  /// Says that nothing needed the memory of an empty queue since the last call. No effect if bytes wait.
  void rest();

  bool empty() const noexcept { return waiting() == 0; }
  /// Bytes that have not left.
  std::size_t waiting() const noexcept { return leaving_.size() - left_ + sealed_bytes_ + open_.size(); }
  /// The bytes that leave next. Valid until pop(). Pre: not empty.
  std::span<const char> front();
  /// Says that the first `bytes` bytes of front() have left.
  void pop(std::size_t bytes);

  /// Memory that the queue holds, in bytes.
  std::size_t held() const noexcept;

 private:
  static constexpr std::size_t most_spares = 2;

  std::vector<char> take_spare();
  void spare(std::vector<char> block);
  void shrink();

  std::vector<char> leaving_;
  std::size_t left_ = 0;  // bytes of leaving_ that have left
  std::deque<std::vector<char>> sealed_;
  std::size_t sealed_bytes_ = 0;
  std::vector<char> open_;
  std::vector<std::vector<char>> spares_;

  std::size_t round_ = 0;  // bytes that left since the queue was empty
  support::recent_peak peak_;
};

}  // namespace troupe::network
