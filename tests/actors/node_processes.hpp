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

/// Forks processes whenever it is asked to: it is forked itself while its parent has a single thread, and never has a second
/// one. All that it forked end with it, and it with its parent.
class nursery {
 public:
  /// `run(name, port)` is what a child does; it ends by being killed.
  explicit nursery(std::function<void(const std::string& name, std::uint16_t port)> run);
  ~nursery();

  pid_t start(const std::string& name, std::uint16_t port);

 private:
  support::owned_descriptor line_;
  pid_t pid_ = 0;
};

/// Given in one process and taken in another, of those forked after it was made.
class shared_signal {
 public:
  shared_signal();
  ~shared_signal();
  shared_signal(const shared_signal&) = delete;
  shared_signal& operator=(const shared_signal&) = delete;

  void give();
  void take();
  /// False if it is not given within `patience`.
  bool take_within(std::chrono::seconds patience);
  /// Forgets what was given. Nobody may be waiting but the dead.
  void reset();

 private:
  sem_t* shared_;
};

/// Cuts this process's connections to whoever listens at `port` of loopback: both ends see them end.
void cut_connections_to(std::uint16_t port);
/// Cuts all of them.
void cut_connections();

/// Stops a process, and returns when all of its threads are.
void freeze(pid_t pid);

}  // namespace troupe::test
