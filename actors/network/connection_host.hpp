// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <caf/fwd.hpp>

#include <troupe/actors/gate/introduced_nodes.hpp>
#include <troupe/actors/network/node_ids.hpp>
#include <troupe/actors/network/own_actors.hpp>
#include <troupe/actors/rights/policy_file.hpp>

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

  /// The nodes that have introduced themselves by connections with certificates.
  virtual const std::shared_ptr<gate::introduced_nodes>& introduced() const = 0;

  /// The nodes of CAF that are connected with certificates.
  virtual const std::shared_ptr<node_ids>& ids() const = 0;

  /// What the roles of the cluster may do here; null: nobody has said it.
  virtual const rights::policy_file* policy() const noexcept = 0;

  /// The actors that the node is made of.
  virtual const std::shared_ptr<own_actors>& own() const = 0;

  /// Says whether the connection with this socket goes on in shared memory, and with which process as the kernel says; 0 if the kernel
  /// names none, because that process is in another namespace of processes.
  virtual void note_channel(int socket, std::optional<std::uint64_t> process) = 0;
  /// Says how many bytes wait to leave by the connection with this socket. Called for more than `least_noted` bytes and once after.
  virtual void note_waiting(int socket, std::size_t bytes) = 0;
  static constexpr std::size_t least_noted = std::size_t{64} << 10;
  /// Says that the program at this address sent what it may not send, so that its connection is over.
  virtual void note_wrong(const std::string& address, const std::string& what) = 0;

 protected:
  ~connection_host() = default;
};

}  // namespace troupe::network
