// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/dial_thread_test.cpp, tests/actors/membership/dialer_test.cpp
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <caf/error.hpp>

#include <troupe/actors/gate/connection_gate.hpp>
#include <troupe/actors/gate/reception.hpp>
#include <troupe/actors/gate/tls_session.hpp>
#include <troupe/actors/support/host_lookup.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::network {

/// A connection to an address, made to see what program listens there, and whether this node talks to it. Takes no byte from a node that
/// listens: release() gives the connection away. Never waits: the caller waits until the socket is ready, then calls go_on().
class address_probe {
 public:
  enum class verdict { undecided, node, stranger, nobody, refused };

  explicit address_probe(gate::connection_gate gate) noexcept : gate_(std::move(gate)) {}

  /// Begins to connect to the first of the addresses that accepts a connection.
  verdict begin(support::host_lookup found);
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
  /// Why no program was reached, or why this node does not talk to it. Pre: the verdict is `nobody` or `refused`.
  caf::error problem() const;

 private:
  verdict try_next();
  void failed(int problem);
  verdict connect_done();
  verdict ask_gate();
  verdict refuse(const gate::refusal& why);
  verdict shake_hands();
  verdict hear();

  gate::connection_gate gate_;
  support::host_lookup found_;
  addrinfo* next_ = nullptr;
  support::owned_descriptor socket_;
  std::string there_;                           // the address and port of the program that accepted the connection
  std::unique_ptr<gate::tls_session> session_;  // with certificates, once connected
  short events_ = 0;
  bool connected_ = false;
  bool is_refused_ = true;  // whether every address answered that no program listens
  int last_problem_ = 0;    // ECONNRESET: the program that listens said nothing
  std::string refusal_;     // why the gate refused the program that listens
};

}  // namespace troupe::network
