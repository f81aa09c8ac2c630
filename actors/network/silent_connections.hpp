// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

namespace troupe::network {

/// Accepted connections on which nothing has come yet. Whoever reaches the port can make such connections, and each takes a
/// descriptor. One thread at a time may use it.
///   NH-1  there are at most `most` silent connections: one more ends the oldest.
///   NH-2  silent connections leave an eighth of the process's descriptors free, at most `reserve`. A new connection that takes one
///         of these ends the oldest silent connection, which may be itself.
class silent_connections {
 public:
  static constexpr std::size_t most = 256;
  static constexpr std::size_t reserve = 32;

  /// To be kept until something comes on the connection, or the connection is over.
  using token = std::shared_ptr<const int>;

  /// Adds an accepted connection. The event loop finds that a connection is over which this function ends.
  token add(int socket);

 private:
  std::deque<std::weak_ptr<const int>> all_;  // the oldest first
};

}  // namespace troupe::network
