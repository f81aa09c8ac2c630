// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/address_race_test.cpp, tests/actors/network/dial_thread_test.cpp, tests/actors/membership/dialer_test.cpp
#pragma once

#include <netdb.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/error.hpp>

#include <troupe/actors/gate/connection_gate.hpp>
#include <troupe/actors/gate/reception.hpp>
#include <troupe/actors/gate/tls_session.hpp>
#include <troupe/actors/support/host_lookup.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/messages/expect.hpp>

namespace troupe::network {

/// Connects to an address to find out whether a node listens at the address, and whether the gate lets this node talk to it.
/// The probe only peeks at the first bytes, so release() hands over the connection with all its bytes. No function blocks: the
/// caller polls socket() for events(), then calls go_on().
class address_probe {
 public:
  enum class verdict { undecided, node, stranger, nobody };

  explicit address_probe(gate::connection_gate gate) noexcept : gate_(std::move(gate)) {}

  verdict begin(const addrinfo& to);
  /// Continues the attempt. To be called when poll(2) reports one of events() on socket().
  verdict go_on();

  /// The socket; -1 before begin(), after the verdict `nobody`, and after release().
  int socket() const noexcept { return socket_.get(); }
  /// The events to wait for, as poll(2) names them.
  short events() const noexcept;

  /// The address of the program that accepted the connection, in numbers. Pre: the verdict is `node`.
  std::string reached() const;
  /// Hands the connection over to the caller. With certificates both ends have proven who they are. Pre: the verdict is `node`.
  gate::proven_connection release() {
    TROUPE_EXPECT(socket_);
    return {std::move(socket_), std::move(session_)};
  }
  /// Kinds of problems. A later kind tells more about the address than an earlier kind.
  enum class obstacle { no_such_network, nobody_listens, no_way, hung_up, refused };
  obstacle what() const noexcept;
  /// Why no node was reached, or why the gate refused the program that listens. Pre: the verdict is `nobody`.
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
  int last_problem_ = 0;   // an errno; ECONNRESET: the connection ended, or was refused
  gate::refusal refusal_;  // why the gate refused the program that listens, or how its handshake ended
};

/// Returns the addresses in an order in which IPv6 and IPv4 alternate. The first address stays the first.
std::vector<const addrinfo*> by_turns(const addrinfo* all);

/// Looks for a node at all addresses of a host, by the algorithm of RFC 8305 ("Happy Eyeballs"). No function blocks. The caller
/// calls go_on() when a socket of probes() is ready, and look() at the time next_look().
///   AR-1  an address is tried `head_start` after the address before it, or at once when an earlier address has failed. So an
///         address that drops packets delays the next address by `head_start` at most.
///   AR-2  the first address at which a node listens is taken. If no node listens at any address, the problem that tells most
///         is reported. A refusal tells more than a connection that ended, which tells more than an address where nobody
///         listens.
class address_race {
 public:
  using clock = std::chrono::steady_clock;
  using verdict = address_probe::verdict;
  static constexpr std::chrono::milliseconds head_start{250};

  explicit address_race(gate::connection_gate gate) noexcept : gate_(std::move(gate)) {}

  verdict begin(support::host_lookup found, clock::time_point now);
  /// Continues the probe that has this socket. To be called when the socket is ready for the events of the probe.
  verdict go_on(int socket, clock::time_point now);
  /// Begins to try the next address if the time next_look() has come.
  verdict look(clock::time_point now);
  /// When look() tries the next address; clock::time_point::max() if no address is left.
  clock::time_point next_look() const noexcept { return next_ < order_.size() ? next_at_ : clock::time_point::max(); }

  /// The probes that are undecided.
  const std::vector<std::unique_ptr<address_probe>>& probes() const noexcept { return probes_; }
  /// The probe whose connection leads to a node. Pre: the verdict is `node`.
  address_probe& winner() const noexcept {
    TROUPE_EXPECT(winner_);
    return *winner_;
  }
  /// Why no node was reached. Pre: the verdict is `nobody`.
  caf::error problem() const;

 private:
  verdict begin_next(clock::time_point now);
  verdict take(std::size_t which, verdict how, clock::time_point now);

  gate::connection_gate gate_;
  support::host_lookup found_;
  std::vector<const addrinfo*> order_;  // points into `found_`
  std::size_t next_ = 0;
  clock::time_point next_at_;
  std::vector<std::unique_ptr<address_probe>> probes_;
  std::unique_ptr<address_probe> winner_;
  std::unique_ptr<address_probe> loser_;  // the failed probe whose problem tells most
};

}  // namespace troupe::network
