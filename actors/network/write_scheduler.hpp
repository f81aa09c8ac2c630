// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/write_scheduler_test.cpp, tests/actors/network/write_queue_test.cpp
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <troupe/actors/network/message_head.hpp>
#include <troupe/actors/support/recent_peak.hpp>
#include <troupe/messages/trailing_elements.hpp>

namespace troupe::network {

/// Stores the bytes that wait to leave by a connection, in blocks. The last bytes of a block may be trailing bytes, which lie
/// in memory of somebody else.
///   WQ-1  bytes leave in the order in which they were added.
///   WQ-2  adding a message moves at most `full_block` bytes of earlier messages, however many bytes wait.
///   WQ-3  blocks whose bytes have left are used again while the traffic stays as large. Memory that was not needed lately is
///         freed.
///   WQ-4  trailing bytes leave out of their own memory, and their owner is let go when they have left.
class write_queue {
 public:
  /// A block of this size gets no more messages.
  static constexpr std::size_t full_block = std::size_t{512} << 10;
  /// An empty queue keeps a block whose capacity is at most twice this many bytes, even if the block was not needed lately.
  static constexpr std::size_t kept_bytes = std::size_t{64} << 10;

  /// The last block; new bytes are added to its end.
  std::vector<char>& open() noexcept { return open_; }
  /// Says that the last message is complete. A full block then gets no more messages.
  void seal();
  /// As seal(); but the last block gets no more messages, however few bytes it has.
  void close_block();
  /// As close_block(), after adding bytes that lie in memory of somebody else. Pre: the last block is not empty.
  void close_block(trailing_bytes trailing);
  /// Says that an empty queue has needed no memory since the last call. After many calls the queue frees its memory. No effect
  /// if bytes wait.
  void rest();

  bool empty() const noexcept { return waiting() == 0; }
  /// How many bytes have not left.
  std::size_t waiting() const noexcept { return leaving_.size() - left_ + sealed_bytes_ + open_.size(); }
  /// The bytes that leave next. Valid until pop(). Pre: not empty.
  std::span<const char> front();
  /// How many bytes of the block that leaves next have not left. Pre: not empty.
  std::size_t front_block();
  /// Says that the first `bytes` bytes of front() have left.
  void pop(std::size_t bytes);

  /// Memory that the queue holds, in bytes, without trailing bytes.
  std::size_t held() const noexcept;

 private:
  static constexpr std::size_t most_spares = 2;

  struct block {
    std::vector<char> bytes;
    trailing_bytes trailing = {};

    std::size_t size() const noexcept { return bytes.size() + trailing.bytes.size(); }
  };

  void begin_block();
  std::vector<char> take_spare();
  void spare(std::vector<char> block);
  void shrink();

  block leaving_;
  std::size_t left_ = 0;  // bytes of leaving_ that have left
  std::deque<block> sealed_;
  std::size_t sealed_bytes_ = 0;
  std::vector<char> open_;
  std::vector<std::vector<char>> spares_;

  std::size_t round_ = 0;  // bytes that left since the queue was empty
  support::recent_peak peak_;
};

/// Decides in which order bytes leave by a connection. A connection of BASP has two queues once the other end reads fragments.
/// A large message goes to the bulk queue and leaves in fragments. Between two fragments the messages of the prompt queue
/// leave. So a heartbeat never waits for a whole large message.
///   WS-1  before split_large(), all bytes leave unchanged, in the order in which they were added.
///   WS-2  a message whose payload has more than `most_whole` bytes leaves in fragments. A smaller message leaves whole, by the
///         bulk queue if WS-3 needs that. After each fragment or whole message of the bulk queue, the first block of the prompt
///         queue's write_queue leaves, if messages wait there.
///   WS-3  messages of one sender to one receiver leave in the order in which they were added, as CAF promises to actors. A
///         message to CAF's broker leaves after all earlier messages of its sender. Messages of the sender `unordered` have no
///         order, because their receivers take them in any order.
///   WS-4  the last bytes of a large message leave after all bytes that were added to the prompt queue before this message.
///   WS-5  elements leave directly behind the message that they trail.
class write_scheduler {
 public:
  /// The most payload that one fragment has.
  static constexpr std::size_t fragment_bytes = std::size_t{256} << 10;
  /// The largest payload of a message that leaves whole: a piece of a tensor of `fragment_bytes`, and its description.
  static constexpr std::size_t most_whole = fragment_bytes + (std::size_t{4} << 10);

  /// Makes the next message that is added say that this end reads fragments. No effect after the first call. Pre: all bytes are
  /// BASP messages.
  void announce_reading() noexcept;
  /// Makes large messages that are added from now on leave in fragments. `unordered`: see WS-3. Pre: all bytes are BASP
  /// messages.
  void split_large(std::uint64_t unordered) noexcept;

  /// The last block; new bytes are added to its end.
  std::vector<char>& open() noexcept { return prompt_.open(); }
  /// Calls `look` with the header of each message that was added since the last seal(). Pre: all bytes are BASP messages.
  template <class Look>
  void for_each_new(Look look) {
    for (auto at = sorted_; open().size() - at >= message_head::bytes;) {
      const auto head = head_at(at);
      look(head);
      at += std::min(message_head::bytes + head.payload, open().size() - at);
    }
  }
  /// Lets elements trail messages that are added from now on: the other end reads them. Pre: split_large() was called.
  void let_trail() noexcept { lets_trail_ = true; }
  bool lets_trail() const noexcept { return lets_trail_; }
  /// Says that the last message is complete. `trailing`: the elements that trail it. Pre: the sender of a message with trailing
  /// elements is `unordered`.
  void seal(trailing_bytes trailing = {});

  bool empty() const noexcept { return prompt_.empty() && bulk_.empty() && unit_.head_left == 0; }
  /// How many bytes have not left.
  std::size_t waiting() const noexcept { return prompt_.waiting() + bulk_.waiting() + unit_.head_left; }
  /// The bytes that leave next. Valid until pop(). Pre: not empty.
  std::span<const char> front();
  /// Whether further bytes leave directly behind front(), before other messages have their turn.
  bool goes_on() const noexcept { return front_is_part_; }
  /// Says that the first `bytes` bytes of front() have left.
  void pop(std::size_t bytes);

  /// Memory that the queues hold, in bytes.
  std::size_t held() const noexcept { return prompt_.held() + bulk_.held(); }

 private:
  enum class queue { prompt, bulk };
  using sender_and_receiver = std::pair<std::uint64_t, std::uint64_t>;
  struct message {
    sender_and_receiver between;
    std::size_t bytes;
    std::uint64_t after;  // bytes that leave by the prompt queue before the end of this message
  };

  message_head head_at(std::size_t position);
  void note_trailing();
  void sort_messages();
  bool belongs_in_bulk(const message_head& head) const;
  void move_to_bulk(std::size_t at, const message& which);
  void begin_unit();
  bool bulk_has_to_wait() const;
  void begin_bulk_unit();
  void end_bulk_message();

  enum class announcement { none, due, made } announcement_ = announcement::none;  // that this end reads fragments
  std::optional<std::uint64_t> unordered_;                                         // once large messages leave in fragments
  bool lets_trail_ = false;
  bool front_is_part_ = false;

  write_queue prompt_;
  std::size_t sorted_ = 0;         // bytes of prompt_.open() whose queue is decided
  std::uint64_t prompt_left_ = 0;  // bytes that have left by the prompt queue
  write_queue bulk_;               // whole messages, header and payload
  std::deque<message> in_bulk_;
  std::map<sender_and_receiver, std::size_t> ordered_in_bulk_;  // how many messages, without those of unordered_

  using head_bytes = std::array<char, message_head::bytes>;
  /// The bytes of one queue that leave before the other queue has its turn.
  struct {
    queue of = queue::prompt;   // of this unit or, before it has begun, of the last unit
    std::size_t left = 0;       // bytes of the queue that have not left; 0: no unit has begun
    head_bytes head{};          // leaves ahead of these bytes
    std::size_t head_left = 0;  // bytes of `head` that have not left
  } unit_;
  /// The message that leaves in fragments.
  struct {
    head_bytes head{};
    std::size_t left = 0;  // bytes of its payload that no unit has taken yet
  } split_;
};

}  // namespace troupe::network
