// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <sys/uio.h>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include <troupe/actors/gate/endpoint.hpp>
#include <troupe/actors/network/memory_channel.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::network {

/// The shared memory of one connection, as one end of the connection uses it. A channel is memory that both ends share, and a
/// socket (`bell`) by which each end wakes the other. An end in the same process is woken without the bell (see search()).
///
///   state      meaning                                             next state
///   absent     the connection stays with TCP                       none
///   searching  the two ends may still find a channel               search() finds a channel: open
///                                                                  the last search() finds none: absent
///                                                                  expect() can't open a listener: absent
///   open       the two ends share memory                           cut(): cut
///   cut        one end has left: memory can be read, not written   none
///
/// A listener is a Unix socket of the calling end. The called end connects to the listener and passes the memory (see
/// channel_listener).
///
/// At first the bytes of each direction go by TCP. In the states open and cut, a direction moves to memory once, and stays in
/// memory:
///
///   direction  moves to memory
///   outgoing   in move_outgoing(), once the other end has mapped the memory
///   incoming   in reads(), once TCP has brought all bytes that the other end sent before its outgoing direction moved
///
///   CA-1  bytes in memory are read only after all bytes that the other end sent by TCP.
///   CA-2  a write rings the bell once if the reader at the other end sleeps. A read rings the bell once if the writer at the
///         other end waits for space and enough is free.
///   CA-3  after cut() every byte that is in memory can be read, and no write succeeds.
class connection_channel final : public gate::endpoint {
 public:
  /// The calling end gives up after this many searches without a channel.
  static constexpr int searches_of_caller = 16;

  enum class state { absent, searching, open, cut };

  /// The first state is `searching` if this end may share memory, and `absent` if not.
  explicit connection_channel(bool shares_memory)
      : state_(shares_memory ? state::searching : state::absent), searches_left_(shares_memory ? 1 : 0) {}

  /// Opens the listener by which the other end passes the memory. Called at the calling end, before its first byte leaves.
  void expect(int connection);
  /// Searches once; to be called after a read. If the search has opened the channel, returns the process at the other end, or 0
  /// if the kernel does not name this process. Otherwise returns nothing. `neighbour`: wakes the other end if it is in this
  /// process; false if not, and then the bell wakes it. Pre: the state is `searching`.
  std::optional<std::uint64_t> search(int connection, std::function<bool()> neighbour = {});
  /// Ends all writing to memory. Pre: the state is `open`.
  void cut();

  state now() const noexcept { return state_; }

  /// Counts bytes that TCP brought.
  void count_received(std::size_t bytes) noexcept { received_ += bytes; }
  /// Counts bytes that left. The count is not used once the outgoing direction has moved.
  void count_sent(std::size_t bytes) noexcept { sent_ += bytes; }

  /// Moves the incoming direction to memory if TCP has brought all bytes before those in memory. Returns whether the direction
  /// has moved, by this call or earlier.
  bool reads() { return channel_ && channel_->incoming.begin_after(received_); }
  /// Whether the incoming direction had moved to memory at the last reads() or read().
  bool has_read() const { return channel_ && channel_->incoming.begun(); }
  /// Whether the outgoing direction has moved to memory.
  bool writes() const { return channel_ && channel_->outgoing.begun(); }
  /// Moves the outgoing direction to memory if that is possible and has not happened.
  void move_outgoing() {
    if (channel_ && !writes() && channel_->is_joined()) channel_->outgoing.begin(sent_);
  }

  /// As readv(2): EAGAIN if memory has no bytes to read yet; EPROTO if the other end's counter is impossible.
  ssize_t read(const iovec& first, const iovec& second) override;
  /// As send(2): EAGAIN if there is no space; EPIPE if the channel is cut or the other end's counter is impossible. Pre:
  /// writes().
  ssize_t write(const char* from, std::size_t bytes, bool goes_on) override;
  /// How many bytes this end has read from memory and written to memory.
  std::uint64_t moved() const noexcept { return moved_; }

  // Pre of has_unread(), may_sleep(), wake_reader(), bell() and take_rings(): the state is `open` or `cut`.

  /// Whether memory holds unread bytes, or this end has set its sleep flag as a reader. Costs one load.
  bool has_unread() const override { return memory().incoming.has_news(); }
  bool is_empty() const { return memory().incoming.is_empty(); }
  /// Asks the other end to ring the bell: after its next write if `waits_for_bytes`, and once there is enough space if
  /// `waits_for_space`. Returns whether this end may sleep; false if there are bytes or space now.
  bool may_sleep(bool waits_for_bytes, bool waits_for_space) {
    const bool reader = !waits_for_bytes || memory().incoming.may_sleep() || !reads();
    const bool writer = !waits_for_space || memory().outgoing.may_sleep();
    return reader && writer;
  }
  /// Tells the other end that this end polls the memory, and needs no ring.
  void wake_reader() { memory().incoming.wake(); }

  /// The socket that becomes readable when the other end rings or leaves.
  int bell() const noexcept { return bell_.get(); }
  /// Reads the bytes of all rings from the bell; false if the other end has left.
  bool take_rings() const;

 private:
  memory_channel& memory() const {
    assert(channel_);
    return *channel_;
  }
  void open(channel_with_bell found);
  void give_up();
  void ring() const;

  state state_;
  int searches_left_;
  std::optional<channel_listener> listener_;  // at the calling end, while the state is `searching`
  std::unique_ptr<memory_channel> channel_;   // in the states `open` and `cut`, as is bell_
  support::owned_descriptor bell_;
  std::function<bool()> neighbour_;
  std::uint64_t received_ = 0;  // bytes that came by TCP
  std::uint64_t sent_ = 0;
  std::uint64_t moved_ = 0;
};

}  // namespace troupe::network
