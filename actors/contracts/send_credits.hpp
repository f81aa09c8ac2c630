// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/contracts/send_credits_test.cpp, tests/actors/contracts/credit_accounts_test.cpp
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include <troupe/messages/ids.hpp>

namespace troupe::contracts {

/// Counts the bytes of calls that are under way, and says which call may leave. A state machine without threads; `send_credits`
/// makes threads wait. There is an account for each node and each depth of calls. A call that a program makes has depth 0; a
/// function that a call of depth n runs makes calls of depth n + 1. A call that a hook makes may have to wait until its
/// deadline (BA-3).
///   BA-1  the calls of one account have at most `limit` bytes under way together, or there is only one such call.
///   BA-2  the calls of one account leave in the order in which they asked.
///   BA-3  calls that no hook makes never wait for each other in a circle: a call waits only for calls of its own depth, and
///         these wait only for deeper calls. A call that a hook of a pass makes has depth 0, also if a deep call waits for the
///         pass. So this call may wait in a circle, until its deadline.
class credit_accounts {
 public:
  struct account {
    node_id to;
    std::size_t depth;
    auto operator<=>(const account&) const = default;
  };
  using ticket = std::uint64_t;

  explicit credit_accounts(std::uint64_t limit) : limit_(limit) {}

  /// Takes the bytes of a call at once. False if the call has to wait.
  bool take(const account& of, std::uint64_t bytes);
  /// Puts a call at the end of the line of its account.
  ticket wait(const account& of, std::uint64_t bytes);
  /// Takes the bytes of a call that waits. False if the call still has to wait.
  bool take_in_turn(const account& of, ticket which);
  /// Removes a call that gives up waiting.
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

/// Makes threads that send to a node wait while too many bytes are under way to the node. So a slow node slows the nodes that
/// send to it, and no node needs unbounded memory. Any thread may use send_credits.
///   SQ-1  take() returns at its deadline at the latest, and soon after stop().
///   SQ-2  a thread that waits has freed its worker slot (see blocking_observer).
///   SQ-3  take() never waits in a continuation, because a continuation may run on the thread that brings the answers.
///   SQ-4  a credit gives its bytes back once: by give_back(), or in its destructor.
class send_credits {
  struct ledger;

 public:
  using account = credit_accounts::account;
  enum class outcome { taken, busy, deadline_passed, stopped };

  /// Bytes that were taken. The destructor gives the bytes back, also after the end of its send_credits.
  class credit {
   public:
    credit() = default;
    credit(credit&& other) noexcept = default;
    credit& operator=(credit&& other) noexcept;
    ~credit() { give_back(); }

    void give_back() noexcept;
    /// Whether there are bytes to give back.
    explicit operator bool() const noexcept { return from_ != nullptr; }

   private:
    friend send_credits;
    credit(std::shared_ptr<ledger> from, const account& of, std::uint64_t bytes);

    std::shared_ptr<ledger> from_;  // null: no bytes
    account of_{};
    std::uint64_t bytes_ = 0;
  };

  struct result {
    outcome how;
    credit taken;  // empty unless `how` is `taken`
  };

  explicit send_credits(std::uint64_t limit);

  /// Takes `bytes` from the account; waits for free bytes until `until` at most. Outcome `busy`: the bytes are not free, and
  /// the thread can't wait because it runs a continuation. If `stop` is not null: once `*stop` is true and wake() was called,
  /// the waiting ends with `stopped`.
  result take(const account& of, std::uint64_t bytes, std::chrono::steady_clock::time_point until,
              const std::atomic<bool>* stop = nullptr);
  /// To be called when the `stop` of a take() has become true.
  void wake();
  /// Bytes of calls that are under way.
  std::uint64_t under_way(const account& of) const;
  /// For the node's end: ends all waiting.
  void stop();

 private:
  struct wish {
    account of;
    std::uint64_t bytes;
    std::chrono::steady_clock::time_point until;
    const std::atomic<bool>* stop;
  };
  outcome take_or_wait(const wish& what);
  outcome wait(const wish& what);

  std::shared_ptr<ledger> ledger_;  // shared with each credit
};

}  // namespace troupe::contracts
