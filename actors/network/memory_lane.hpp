// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <troupe/actors/network/memory_ring.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::network {

/// Memory that the two ends of a connection share, with a ring in either direction.
///   ML-1  only memory of the right size, which nobody can make smaller, is mapped.
class memory_lane {
 public:
  enum class end { opened, joined };

  /// Memory for others to map; nothing if the system has none.
  static support::owned_descriptor make_memory();
  /// Maps it; nothing if it is not what make_memory made.
  static std::unique_ptr<memory_lane> map(const support::owned_descriptor& memory, end which);

  memory_lane(const memory_lane&) = delete;
  memory_lane& operator=(const memory_lane&) = delete;
  ~memory_lane();

  /// Whether the other end has mapped it.
  bool is_joined() const;

  ring_reader incoming;
  ring_writer outgoing;

 private:
  struct layout;
  memory_lane(layout* shared, end which);

  layout* shared_;
};

/// A lane, and what wakes the end that waits for something in it: a byte on this socket, which says nothing else. The socket
/// ends when the other end does.
struct lane_with_bell {
  std::unique_ptr<memory_lane> lane;
  support::owned_descriptor bell;
};

/// How the two ends of a TCP connection get a lane without a word on it. Who called opens a door: a socket whose name, in the
/// network namespace, says which connection it is for. Who was called knocks there, with the memory. Where there is no door,
/// TCP remains.
///   LD-1  both ends are on loopback, in one network namespace, and of one user.
///   LD-2  nothing waits for the other end, and nothing is left behind, however either ends.
class lane_door {
 public:
  /// For the calling end of the connection; nothing if it is not on loopback, or there is no room for more sockets.
  static std::optional<lane_door> open(int connection);
  /// Takes the lane if the other end was here. To be asked again.
  lane_with_bell answer();

  /// For the end that was called. No lane if there is no door.
  static lane_with_bell knock(int connection);

  /// In the abstract namespace; empty for what is not on loopback. For tests.
  static std::string name(int connection, bool is_caller);

 private:
  explicit lane_door(support::owned_descriptor door) : door_(std::move(door)) {}

  support::owned_descriptor door_;
  support::owned_descriptor visitor_;
};

}  // namespace troupe::network
