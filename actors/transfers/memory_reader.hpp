// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mutex>
#include <utility>

#include <troupe/actors/contracts/workers.hpp>

namespace troupe::services {

class node_services;

}  // namespace troupe::services

namespace troupe::transfers {

/// Spawns a memory reader. Throws std::system_error if the system gives no thread.
contracts::memory_reader_actor spawn_memory_reader(services::node_services& here);

/// The memory reader of a node; the first get() starts the reader. Any thread may use the object.
class lazy_memory_reader {
 public:
  explicit lazy_memory_reader(services::node_services& here) : here_(here) {}

  /// The reader; null after stop(). Throws std::system_error if the system gives no thread. Pre: the node has a network.
  contracts::memory_reader_actor get() {
    std::lock_guard lock(mutex_);
    if (!stopped_ && !reader_) reader_ = spawn_memory_reader(here_);
    return reader_;
  }
  /// For the node's end: returns the reader, or null if none was started. The caller ends the reader.
  contracts::memory_reader_actor stop() {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    return std::exchange(reader_, {});
  }

 private:
  services::node_services& here_;
  std::mutex mutex_;  // guards the members below
  contracts::memory_reader_actor reader_;
  bool stopped_ = false;
};

}  // namespace troupe::transfers
