// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include <troupe/messages/ids.hpp>

namespace troupe::network {

/// Counts the bytes of calls that are under way, and says which call may leave. A state machine without threads; `send_credits`
/// makes threads wait. There is an account for each node and each depth of calls: a call that a program makes has depth 0, a call
/// that runs on behalf of a call of depth n makes calls of depth n + 1.
///   BA-1  the calls of one account have at most `limit` bytes under way together, or there is only one such call.
///   BA-2  the calls of one account leave in the order in which they asked.
///   BA-3  calls never wait for each other in a circle: a call waits only for calls of its own depth that are under way, and these
///         wait only for calls of greater depth. So calls between any nodes, however they are nested, go on. A call that a hook of a
///         pass makes has depth 0, also if a deep call waits for the pass: such a call may have to wait until its deadline.
class credit_accounts {
 public:
  struct account {
    node_id to;
    std::size_t depth;
    auto operator<=>(const account&) const = default;
  };
  using ticket = std::uint64_t;

  explicit credit_accounts(std::uint64_t limit) : limit_(limit) {}

  /// Takes bytes at once. False if the call has to wait.
  bool take(const account& of, std::uint64_t bytes);
  /// Puts a call at the end of those that wait.
  ticket wait(const account& of, std::uint64_t bytes);
  /// Takes the bytes of a call that waits. False if it still has to wait.
  bool take_in_turn(const account& of, ticket which);
  /// Removes a call that waits and does not want to leave any more.
  void give_up(const account& of, ticket which);
  /// To be called when a call that took bytes has ended. True if a call waits for these bytes.
  bool give_back(const account& of, std::uint64_t bytes);

  std::uint64_t under_way(const account& of) const;
  /// Whether nothing is under way and nothing waits.
  bool empty() const { return all_.empty(); }

 private:
  struct waiting {
    ticket number;
    std::uint64_t bytes;
  };
  struct balance {
    std::uint64_t bytes = 0;
    std::size_t calls = 0;
    std::deque<waiting> line;
  };

  bool fits(const balance& in, std::uint64_t bytes) const { return in.calls == 0 || in.bytes + bytes <= limit_; }
  void drop_if_unused(const account& of);

  const std::uint64_t limit_;
  ticket last_ = 0;
  std::map<account, balance> all_;
};

}  // namespace troupe::network
