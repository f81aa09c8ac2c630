// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <caf/fwd.hpp>

#include <troupe/actors/network/connection_facts.hpp>
#include <troupe/actors/network/known_peers.hpp>

namespace troupe::network {

class tcp_scribe;

/// What a connection asks of the event loop that serves it. Used by the leader thread only.
class connection_host {
 public:
  /// Whether connections on this machine go on in shared memory.
  virtual bool shares_memory() const = 0;
  /// Makes the network threads poll the connection's shared memory as long as there is traffic.
  virtual void watch(tcp_scribe* connection) = 0;
  /// Ends the polling of the connection.
  virtual void forget(tcp_scribe* connection) = 0;
  /// Makes the connection write and consume what it can, after the current event.
  virtual void catch_up_soon(tcp_scribe* connection) = 0;
  /// Makes the connection read on after all sockets have had their turn: TLS may hold bytes that the socket does not announce any more.
  virtual void read_on_later(tcp_scribe* connection) = 0;

  /// The id of the actor whose messages may overtake each other; 0 if there is none.
  virtual caf::actor_id unordered_sender() const = 0;

  /// What is known of the nodes. Lives as long as the connection.
  virtual const known_peers& peers() const noexcept = 0;

  /// Where the connection tells how it goes on.
  virtual connection_facts& facts() noexcept = 0;
  /// Says that the program at this address sent what it may not send, so that its connection is over.
  virtual void note_wrong(const std::string& address, const std::string& what) = 0;

 protected:
  ~connection_host() = default;
};

}  // namespace troupe::network
