// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mutex>
#include <utility>

#include <troupe/actors/worker_contracts.hpp>

namespace troupe {

class node_services;

/// Throws std::system_error where the system gives no thread.
memory_reader_actor spawn_memory_reader(node_services& here);

/// The memory reader of a node, which starts when it is asked for first. Any thread may use it.
class lazy_memory_reader {
 public:
  explicit lazy_memory_reader(node_services& here) : here_(here) {}

  /// Null after stop(). Throws std::system_error where the system gives no thread. Pre: the node has a network.
  memory_reader_actor get() {
    std::lock_guard lock(mutex_);
    if (!stopped_ && !reader_) reader_ = spawn_memory_reader(here_);
    return reader_;
  }
  /// The node stops: hands out the reader, if there is one, to be ended.
  memory_reader_actor stop() {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    return std::exchange(reader_, {});
  }

 private:
  node_services& here_;
  std::mutex mutex_;  // guards what follows
  memory_reader_actor reader_;
  bool stopped_ = false;
};

}  // namespace troupe
