// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/dial_thread_test.cpp, tests/actors/membership/dialer_test.cpp, tests/actors/network/address_race_test.cpp
#pragma once

#include <netdb.h>

#include <memory>
#include <string>
#include <utility>

#include <caf/error.hpp>

#include <troupe/actors/gate/connection_gate.hpp>
#include <troupe/actors/gate/reception.hpp>
#include <troupe/actors/gate/tls_session.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::network {

/// A connection to an address, made to see what program listens there, and whether this node talks to it. Takes no byte from a node that
/// listens: release() gives the connection away. Never waits: the caller waits until the socket is ready, then calls go_on().
class address_probe {
 public:
  enum class verdict { undecided, node, stranger, nobody };

  explicit address_probe(gate::connection_gate gate) noexcept : gate_(std::move(gate)) {}

  /// Begins to connect.
  verdict begin(const addrinfo& to);
  /// To be called when the socket is ready for events().
  verdict go_on();

  /// The socket; -1 unless the verdict is undecided.
  int socket() const noexcept { return socket_.get(); }
  /// The events to wait for, as poll(2) names them.
  short events() const noexcept;

  /// The address that accepted the connection, as numbers. Pre: the verdict is `node`.
  std::string reached() const;
  /// The connection, which then belongs to the caller; with certificates both ends are proven. Pre: the verdict is `node`.
  gate::proven_connection release() { return {std::move(socket_), std::move(session_)}; }
  /// How much a problem says about the address, from the least to the most.
  enum class obstacle { no_such_network, nobody_listens, no_way, hung_up, refused };
  obstacle what() const noexcept;
  /// Why no node was reached, or why this node does not talk to it. Pre: the verdict is `nobody`.
  caf::error problem() const;

 private:
  verdict failed(int problem);
  verdict connect_done();
  verdict ask_gate();
  verdict refuse(const gate::refusal& why);
  verdict shake_hands();
  verdict hear();

  gate::connection_gate gate_;
  support::owned_descriptor socket_;
  std::string there_;                           // the address and port of the program that accepted the connection
  std::unique_ptr<gate::tls_session> session_;  // with certificates, once connected
  short events_ = 0;
  bool connected_ = false;
  int last_problem_ = 0;   // ECONNRESET: the program that listens said nothing
  gate::refusal refusal_;  // why the gate refused the program that listens, or how its handshake ended
};

}  // namespace troupe::network
