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
///   WQ-2  a message that is added moves at most `full_block` bytes of those before it, however many wait.
///   WQ-3  a block that has left is used again while as much leaves; memory that was not needed lately is freed.
class write_queue {
 public:
  /// A block of that size gets no more messages.
  static constexpr std::size_t full_block = std::size_t{512} << 10;
  /// So much is kept however little leaves.
  static constexpr std::size_t kept_bytes = std::size_t{64} << 10;

  /// The block at the end, to add to.
  std::vector<char>& open() noexcept { return open_; }
  /// Says that the last message is complete: a full block gets no more.
  void seal();

  bool empty() const noexcept { return waiting() == 0; }
  /// Bytes that have not left.
  std::size_t waiting() const noexcept { return leaving_.size() - left_ + sealed_bytes_ + open_.size(); }
  /// What leaves next, until something is taken. Pre: not empty.
  std::span<const char> front();
  /// So many bytes of front() have left.
  void pop(std::size_t bytes);

  /// Memory that is held, in bytes.
  std::size_t held() const noexcept;

 private:
  static constexpr std::size_t most_spares = 2;

  std::vector<char> take_spare();
  void spare(std::vector<char> block);
  void shrink();

  std::vector<char> leaving_;
  std::size_t left_ = 0;  // of it
  std::deque<std::vector<char>> sealed_;
  std::size_t sealed_bytes_ = 0;
  std::vector<char> open_;
  std::vector<std::vector<char>> spares_;

  std::size_t round_ = 0;  // bytes that left since the queue was empty
  support::recent_peak peak_;
};

}  // namespace troupe::network
