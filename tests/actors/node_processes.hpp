// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <semaphore.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::test {

/// A forked process (the nursery) that forks further processes when its parent asks. The nursery never has a second thread,
/// because a fork of a process with several threads is not safe. The processes that the nursery forked end with the nursery,
/// and the nursery ends with its parent. To be made while the parent has one thread.
class nursery {
 public:
  /// Every process that the nursery forks calls `run(name, port)`, and ends when `run` returns.
  explicit nursery(std::function<void(const std::string& name, std::uint16_t port)> run);
  ~nursery();

  pid_t start(const std::string& name, std::uint16_t port);

 private:
  support::owned_descriptor line_;
  pid_t pid_ = 0;
};

/// A semaphore that several processes share: one process gives the signal, another process takes the signal. Only the process
/// that made the object, and processes that were forked after that, share the semaphore.
class shared_signal {
 public:
  shared_signal();
  ~shared_signal();
  shared_signal(const shared_signal&) = delete;
  shared_signal& operator=(const shared_signal&) = delete;

  void give();
  void take();
  /// False if the signal is not given within `patience`.
  bool take_within(std::chrono::seconds patience);
  /// Forgets all signals that were not taken. Pre: no living process waits in take().
  void reset();

 private:
  sem_t* shared_;
};

/// Shuts down the connections that this process has made to port `port`. Both ends of each connection see the end.
void cut_connections_to(std::uint16_t port);
/// Shuts down all IPv4 connections of this process.
void cut_connections();

/// Stops a process. Returns when all threads of the process have stopped.
void freeze(pid_t pid);

}  // namespace troupe::test
