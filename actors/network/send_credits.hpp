// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include <troupe/actors/calls/credit_accounts.hpp>

namespace troupe::calls {

/// Makes threads that call a node wait while too many bytes are under way to the node: a node that does not keep up slows those
/// that call it, and memory of both stays within bounds. Any thread may use it.
///   SQ-1  take() returns at its deadline at the latest, and soon after stop().
///   SQ-2  a thread that waits has freed its worker slot (see blocking_observer).
///   SQ-3  take() never waits in a continuation, because a continuation may run on the thread that brings the answers.
class send_credits {
 public:
  using account = credit_accounts::account;
  enum class outcome { taken, busy, deadline_passed, stopped };

  explicit send_credits(std::uint64_t limit) : accounts_(limit) {}

  /// Takes bytes for a call. `busy`: the call would have to wait, and the thread runs a continuation.
  outcome take(const account& of, std::uint64_t bytes, std::chrono::steady_clock::time_point until);
  /// To be called when a call that took bytes has ended.
  void give_back(const account& of, std::uint64_t bytes);
  /// Bytes of calls that are under way.
  std::uint64_t under_way(const account& of) const;
  /// For the node's end: ends all waiting.
  void stop();

 private:
  outcome wait(const account& of, std::uint64_t bytes, std::chrono::steady_clock::time_point until);

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  credit_accounts accounts_;
  bool stopped_ = false;
};

}  // namespace troupe::calls
