// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include <troupe/actors/network/credit_accounts.hpp>

namespace troupe::network {

/// Makes threads that send to a node wait while too many bytes are under way to the node: a node that does not keep up slows those
/// that send to it, and memory of both stays within bounds. Any thread may use it.
///   SQ-1  take() returns at its deadline at the latest, and soon after stop().
///   SQ-2  a thread that waits has freed its worker slot (see blocking_observer).
///   SQ-3  take() never waits in a continuation, because a continuation may run on the thread that brings the answers.
///   SQ-4  a credit gives its bytes back once: when it is told to, or at its end.
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

  /// Takes bytes, at `until` at the latest. `busy`: the thread would have to wait, and runs a continuation. `stop`, if not null, ends
  /// the waiting as the end of the node does, once it is true and wake() was called.
  result take(const account& of, std::uint64_t bytes, std::chrono::steady_clock::time_point until,
              const std::atomic<bool>* stop = nullptr);
  /// To be called when a `stop` of take() has become true.
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

  std::shared_ptr<ledger> ledger_;  // each credit holds it
};

}  // namespace troupe::network
