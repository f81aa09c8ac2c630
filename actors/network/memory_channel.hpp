// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <troupe/actors/network/memory_ring.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::network {

/// Memory that the two ends of a connection share. It holds one ring (memory_ring.hpp) for each direction.
///   ML-1  memory is mapped only if it has the right size and nobody can make it smaller.
class memory_channel {
 public:
  enum class end { opened, joined };

  /// Makes memory that the other process can map. Returns an empty descriptor if the system gives none.
  static support::owned_descriptor make_memory();
  /// Maps the memory. `which`: `opened` in the process that made the memory, `joined` in the process that received the memory.
  /// Null if the memory is not as make_memory() makes it, or can't be mapped.
  static std::unique_ptr<memory_channel> map(const support::owned_descriptor& memory, end which);

  memory_channel(const memory_channel&) = delete;
  memory_channel& operator=(const memory_channel&) = delete;
  ~memory_channel();

  /// Whether the other end has mapped the memory.
  bool is_joined() const;

  ring_reader incoming;
  ring_writer outgoing;

 private:
  struct layout;
  memory_channel(layout* shared, end which);

  layout* shared_;
};

/// A channel, and a socket (`bell`) by which each end wakes the other. A byte on the socket wakes, and has no other meaning.
/// The socket closes when the other end closes.
struct channel_with_bell {
  std::unique_ptr<memory_channel> channel;
  support::owned_descriptor bell;
};

/// The process at the other end of a bell; 0 if the kernel does not name this process.
std::uint64_t process_beyond(const support::owned_descriptor& bell);

/// How the two ends of a TCP connection get a channel without sending a byte on the connection. The calling end opens a
/// listener: a Unix socket whose abstract name holds both addresses of the connection. The called end connects to the listener
/// and passes the memory. If there is no listener, the connection stays with TCP.
///   LD-1  a channel is made only if both ends are on loopback, in one network namespace, and run as one user.
///   LD-2  no end waits for the other end. Nothing is left on the system, however an end closes or dies.
class channel_listener {
 public:
  /// Opens the listener of a connection at its calling end. Returns nothing if the connection is not on loopback, or if the
  /// process has few descriptors left.
  static std::optional<channel_listener> open(int connection);
  /// Returns the channel once the other end has connected to the listener and has passed the memory. An empty result: call
  /// answer() again later.
  channel_with_bell answer();

  /// For the called end: connects to the listener and passes the memory. The result has no channel if there is no listener.
  static channel_with_bell connect(int connection);

  /// The listener's name in the abstract namespace; empty for a connection that is not on loopback. For tests.
  static std::string name(int connection, bool is_caller);

 private:
  explicit channel_listener(support::owned_descriptor listener) : listener_(std::move(listener)) {}

  support::owned_descriptor listener_;
  support::owned_descriptor visitor_;
};

}  // namespace troupe::network
