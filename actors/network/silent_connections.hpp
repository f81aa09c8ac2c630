// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/silent_connections_test.cpp, tests/actors/network/outgoing_connections_test.cpp
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <troupe/actors/gate/reception.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::network {

/// Limits the accepted connections on which nothing has come yet. Whoever reaches the port can make such connections, and each
/// takes a descriptor. One thread at a time may use it.
///   NH-1  there are at most `most` silent connections: one more ends the oldest.
///   NH-2  silent connections leave `reserve` of the process's descriptors free, or an eighth of all if that is less. A new
///         connection that takes one of these descriptors ends the oldest silent connection, which may be the new connection
///         itself.
class silent_connections {
 public:
  static constexpr std::size_t most = 256;
  static constexpr std::size_t reserve = 32;

  /// The connection keeps its token until something comes on it, or until it is over.
  using token = std::shared_ptr<const int>;

  /// Adds an accepted connection. If there are too many (NH-1, NH-2), shuts down the socket of the oldest. The event loop then
  /// finds that this connection is over.
  token add(int socket);

 private:
  std::deque<std::weak_ptr<const int>> all_;  // the oldest first
};

/// Stores the connections that this process makes. A connection is stored from the time at which CAF may use it until its first
/// byte has come. Any thread may use it.
class outgoing_connections {
 public:
  /// Stores a connection to the address, whose other end has proven who it is. The connection is stored as long as the result
  /// lives, or until take() takes it.
  std::shared_ptr<void> store(std::string host, std::uint16_t port, gate::proven_connection made) {
    auto result = std::make_shared<proven>(proven{std::move(host), port, std::move(made)});
    checked_lock lock(mutex_);
    std::erase_if(proven_, [](const auto& each) { return each.expired(); });
    proven_.push_back(result);
    return result;
  }
  /// Takes the oldest connection that was stored for the address; nothing if there is none.
  std::optional<gate::proven_connection> take(const std::string& host, std::uint16_t port) {
    checked_lock lock(mutex_);
    for (auto at = proven_.begin(); at != proven_.end(); ++at) {
      const auto found = at->lock();
      if (!found || found->port != port || found->host != host) continue;
      proven_.erase(at);
      return std::move(found->made);
    }
    return std::nullopt;
  }

  /// Notes that the connection of this socket waits for its first byte. The note holds as long as the result lives.
  silent_connections::token expect_first(const std::string& host, std::uint16_t port, int socket) {
    auto result = std::make_shared<const int>(socket);
    checked_lock lock(mutex_);
    std::erase_if(unanswered_, [](const auto& each) { return each.socket.expired(); });
    unanswered_.push_back({host, port, result});
    return result;
  }
  /// Ends the connections to the address that wait for their first byte. Called by the leader thread, which is also the thread
  /// that destroys connections. So a socket that this function finds is still open.
  void give_up(const std::string& host, std::uint16_t port) {
    checked_lock lock(mutex_);
    for (const auto& each : unanswered_)
      if (const auto socket = each.socket.lock(); socket != nullptr && each.host == host && each.port == port)
        ::shutdown(*socket, SHUT_RDWR);
  }

 private:
  struct proven {
    std::string host;
    std::uint16_t port;
    gate::proven_connection made;
  };
  struct unanswered {
    std::string host;
    std::uint16_t port;
    std::weak_ptr<const int> socket;  // expired: something has come, or the connection is over
  };

  checked_mutex mutex_;
  std::vector<std::weak_ptr<proven>> proven_ TROUPE_GUARDED_BY(mutex_);
  std::vector<unanswered> unanswered_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::network
