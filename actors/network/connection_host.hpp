// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/connection_facts_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include <caf/fwd.hpp>

#include <troupe/actors/gate/known_peers.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::network {

/// Stores facts about the open connections, which other threads may ask for. The number of its socket names a connection. Any
/// thread may use it.
class connection_facts {
 public:
  /// waiting() may return 0 if at most this many bytes wait.
  static constexpr std::size_t least_noted = std::size_t{64} << 10;

  /// Begins the facts of a new connection. Drops the facts of an earlier connection whose socket had the same number.
  void begin(int socket) {
    checked_lock lock(mutex_);
    all_[socket] = {};
  }
  /// Notes that the connection has shared memory. `process`: the process at the other end; 0 if the kernel does not name this
  /// process, because it is in another PID namespace.
  void note_channel(int socket, std::uint64_t process) {
    checked_lock lock(mutex_);
    all_[socket].process = process;
  }
  /// Notes that `bytes` bytes wait to leave by the connection.
  void note_waiting(int socket, std::size_t bytes) {
    checked_lock lock(mutex_);
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
    checked_lock lock(mutex_);
    const auto found = all_.find(socket);
    return found == all_.end() ? facts() : found->second;
  }

  mutable checked_mutex mutex_;
  std::unordered_map<int, facts> all_ TROUPE_GUARDED_BY(mutex_);
};

class tcp_scribe;

/// The functions of an event loop that its connections call. Used by the leader thread only (see network_threads).
class connection_host {
 public:
  /// Whether connections within this machine move to shared memory.
  virtual bool shares_memory() const = 0;
  /// Makes the network threads poll the connection's shared memory as long as there is traffic.
  virtual void watch(tcp_scribe* connection) = 0;
  virtual void forget(tcp_scribe* connection) = 0;
  /// An end of the channel with this name is in this process (see watched_connections).
  virtual void meet(tcp_scribe* connection, const std::string& channel) = 0;
  /// Wakes the other end of the channel without a system call. False: the other end is in another process.
  virtual bool ring(tcp_scribe* connection) = 0;
  /// After the current event, makes the connection write and consume as many bytes as it can.
  virtual void catch_up_soon(tcp_scribe* connection) = 0;
  /// Makes the connection read on after all sockets have had their turn. This is needed because TLS may hold bytes for which
  /// the socket brings no event.
  virtual void read_on_later(tcp_scribe* connection) = 0;
  /// As network_threads::rest_for_large().
  virtual void rest_for_large() = 0;

  /// The id of the actor whose messages may overtake each other; 0 if there is none.
  virtual caf::actor_id unordered_sender() const = 0;

  /// What is known of the other nodes. Lives at least as long as the connection.
  virtual const gate::known_peers& peers() const noexcept = 0;

  virtual connection_facts& facts() noexcept = 0;
  /// Reports that a connection is ended because of the bytes that came. `address`: of the program at the other end. `what`: the
  /// end of the sentence "the program at ADDRESS sent ...".
  virtual void note_wrong(const std::string& address, const std::string& what) = 0;

 protected:
  ~connection_host() = default;
};

}  // namespace troupe::network
