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

/// A process that forks processes for its parent. It is forked itself while its parent has a single thread, and never has a second
/// thread. When the nursery ends, the processes that it forked end. When its parent ends, the nursery ends.
class nursery {
 public:
  /// A child runs `run(name, port)`, until the child is killed.
  explicit nursery(std::function<void(const std::string& name, std::uint16_t port)> run);
  ~nursery();

  pid_t start(const std::string& name, std::uint16_t port);

 private:
  support::owned_descriptor line_;
  pid_t pid_ = 0;
};

/// A signal that one process gives and another process takes. Both processes are forked after the signal was made, or made it.
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
  /// Forgets what was given. No living process may be waiting in take().
  void reset();

 private:
  sem_t* shared_;
};

/// Cuts this process's connections to the process that listens at `port` of loopback. Both ends see them end.
void cut_connections_to(std::uint16_t port);
/// Cuts all connections of this process.
void cut_connections();

/// Stops a process. Returns when all threads of the process have stopped.
void freeze(pid_t pid);

}  // namespace troupe::test
