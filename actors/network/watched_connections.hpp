// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include <caf/intrusive_ptr.hpp>

#include <troupe/actors/network/event_loop.hpp>
#include <troupe/actors/network/tcp_scribe.hpp>

namespace troupe::network {

/// The connections whose shared memory is looked at again and again, as they have traffic there. Of who leads the network threads.
///   WC-1  one without traffic for `watched_for`, or that too many others came after, is dropped in its turn, once the other end
///         is to wake it.
///   WC-2  what forgets a connection may be part of it: it lives until that has returned.
class watched_connections {
 public:
  static constexpr std::chrono::milliseconds watched_for{100};
  static constexpr std::size_t most = 256;

  void add(event_loop& loop, tcp_scribe* connection);
  void forget(tcp_scribe* connection);
  /// No part of them is under way.
  void forget_all(const event_loop& of);

  /// True if something was there. What ended meanwhile goes to `ended`.
  bool look(std::vector<event_loop*>& ended);
  /// Has the other ends wake all; false if there is something to look at.
  bool may_sleep();

 private:
  struct watched {
    event_loop* loop;
    caf::intrusive_ptr<tcp_scribe> connection;  // null once forgotten
    std::chrono::steady_clock::time_point had_traffic;
  };

  void drop_quiet();

  std::vector<watched> all_;
  std::vector<caf::intrusive_ptr<tcp_scribe>> forgotten_;
  bool has_gaps_ = false;  // of forgotten ones
  std::size_t next_ = 0;
};

}  // namespace troupe::network
