// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace troupe::network {

/// What all threads may know of the open connections, by their sockets. Any thread may use it.
class connection_facts {
 public:
  /// So many waiting bytes, or fewer, may be told as 0.
  static constexpr std::size_t least_noted = std::size_t{64} << 10;

  /// A new connection has this socket; an earlier one may have had it too.
  void begin(int socket) {
    std::lock_guard lock(mutex_);
    all_[socket] = {};
  }
  /// The connection goes on in shared memory, with this process as the kernel says; 0 if the kernel names none, because that process is in
  /// another namespace of processes.
  void note_channel(int socket, std::uint64_t process) {
    std::lock_guard lock(mutex_);
    all_[socket].process = process;
  }
  /// So many bytes wait to leave.
  void note_waiting(int socket, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    all_[socket].waiting = bytes > least_noted ? bytes : 0;
  }

  /// The process of note_channel(); nothing if the connection shares no memory.
  std::optional<std::uint64_t> process_beyond(int socket) const { return of(socket).process; }
  std::size_t waiting(int socket) const { return of(socket).waiting; }

 private:
  struct facts {
    std::optional<std::uint64_t> process;
    std::size_t waiting = 0;
  };

  facts of(int socket) const {
    std::lock_guard lock(mutex_);
    const auto found = all_.find(socket);
    return found == all_.end() ? facts() : found->second;
  }

  mutable std::mutex mutex_;  // guards the next one
  std::unordered_map<int, facts> all_;
};

}  // namespace troupe::network
