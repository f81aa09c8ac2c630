// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include <caf/intrusive_ptr.hpp>

#include <troupe/actors/network/event_loop.hpp>

namespace troupe::network {

class tcp_scribe;

/// Polls the shared memory of the connections that have traffic there. Two ends of a channel may both be in this process. Such
/// ends are neighbours: an end that has written or read wakes its neighbour, and only then the neighbour is polled. Used by the
/// leader thread only (see network_threads).
///   WC-1  connections are checked in turn. A connection is dropped if it had no traffic for `watched_for`, or if more than
///         `most` are watched. A connection is dropped only after it has asked the other end to wake it.
///   WC-2  forget() may be called by the connection itself: the connection lives until that call has returned. The next look()
///         or may_sleep() lets it go.
///   WC-3  a neighbour is polled by the next look() after add() or after the ring() of its other end, and until it has asked
///         the other end to wake it. A neighbour whose other end is forgotten is a connection as any other.
class watched_connections {
 public:
  static constexpr std::chrono::milliseconds watched_for{100};
  static constexpr std::size_t most = 256;

  void add(event_loop& loop, tcp_scribe* connection);
  /// An end of the channel with this name is in this process. Once both ends have met, they are neighbours.
  void meet(event_loop& loop, tcp_scribe* connection, const std::string& channel);
  /// Wakes the other end. False: the other end is no neighbour.
  bool ring(tcp_scribe* connection);
  void forget(tcp_scribe* connection);
  /// Forgets the connections of that loop. Pre: none of them is on the call stack.
  void forget_all(const event_loop& of);

  /// Polls all connections; true if there were bytes. Adds event loops that ended meanwhile to `ended`.
  bool look(std::vector<event_loop*>& ended);
  /// Asks all other ends to wake this process; false if there is something to look at now.
  bool may_sleep();

 private:
  struct watched {
    event_loop* loop;
    caf::intrusive_ptr<tcp_scribe> connection;  // null once forgotten
    std::chrono::steady_clock::time_point had_traffic;
  };

  struct neighbour {
    event_loop* loop;
    caf::intrusive_ptr<tcp_scribe> connection;
    std::string channel;
    tcp_scribe* other = nullptr;  // also a key of neighbours_
    bool is_rung = false;         // whether rung_ has it
  };

  bool poll(event_loop& loop, tcp_scribe& connection, std::vector<event_loop*>& ended);
  bool look_at_neighbours(std::vector<event_loop*>& ended);
  void wake(neighbour& which);
  void leave(tcp_scribe* connection);
  void drop_quiet();

  std::vector<watched> all_;
  std::vector<caf::intrusive_ptr<tcp_scribe>> forgotten_;  // kept until their calls have returned
  bool has_gaps_ = false;                                  // some entries have no connection any more
  std::size_t next_ = 0;
  std::unordered_map<tcp_scribe*, neighbour> neighbours_;    // and ends whose other end has not come, or has left
  std::unordered_map<std::string, tcp_scribe*> first_ends_;  // by channel: ends whose other end has not come
  std::vector<tcp_scribe*> rung_;                            // of neighbours_
  std::vector<tcp_scribe*> due_;                             // those that look() polls
};

}  // namespace troupe::network
