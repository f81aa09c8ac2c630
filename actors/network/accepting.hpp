// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/accepting_test.cpp, tests/actors/gate/proven_nodes_test.cpp
#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include <caf/io/network/acceptor.hpp>
#include <caf/io/network/native_socket.hpp>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::network {

/// Accepts the connections of a listening socket. If the process has no free descriptor, CAF's own policy leaves the connection
/// in the queue. The event loop then announces the connection again and again, without a pause.
///   AW-1  if the process has no descriptor for a connection, the connection is accepted with a spare descriptor and closed at
///         once. Then `on_shortage` is called.
///   AW-2  no program that this process starts inherits an accepted connection.
///   AW-3  if the connection can't be closed with the spare descriptor either, it stays in the queue. Then `on_shortage` is
///         called, and the thread waits for `pause`, because the event loop announces the connection again at once.
class accepting {
 public:
  using socket = caf::io::network::native_socket;
  static constexpr std::chrono::milliseconds pause{10};

  /// `on_shortage` gets the error number (errno) of accept4(2).
  explicit accepting(std::function<void(int problem)> on_shortage) : on_shortage_(std::move(on_shortage)) { open_spare(); }

  /// Accepts one connection of the listening socket `from`, and stores its socket in `result`. Returns whether a connection was
  /// accepted.
  bool try_accept(socket& result, socket from);

 private:
  void open_spare();

  std::function<void(int)> on_shortage_;
  support::owned_descriptor spare_;  // is closed to free a descriptor, with which a connection is accepted and closed
};

/// A listening socket of CAF's event loop that accepts connections by `accepting`.
class patient_acceptor final : public caf::io::network::acceptor {
 public:
  patient_acceptor(caf::io::network::default_multiplexer& network, caf::io::network::native_socket socket, accepting how)
      : acceptor(network, socket), how_(std::move(how)) {}

  void handle_event(caf::io::network::operation op) override { handle_event_impl(op, how_); }

 private:
  accepting how_;
};

}  // namespace troupe::network
