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

/// How a listening socket accepts connections. CAF's own policy leaves a connection in the queue if the process has no
/// descriptor for it, and the event loop announces the connection again at once, for ever.
///   AW-1  a connection for which the process has no descriptor is closed at once by means of a spare descriptor. Then
///         `on_shortage` is called.
///   AW-2  no program that this process starts inherits an accepted connection.
///   AW-3  if the connection can't be closed with the spare descriptor either, the connection stays in the queue. Then
///         `on_shortage` is called, and the thread waits for `pause`: the event loop announces the connection again at once.
class accepting {
 public:
  using socket = caf::io::network::native_socket;
  static constexpr std::chrono::milliseconds pause{10};

  /// `on_shortage` gets the number of the system's error.
  explicit accepting(std::function<void(int problem)> on_shortage) : on_shortage_(std::move(on_shortage)) { open_spare(); }

  /// Accepts a connection, as CAF's policies do. False: no connection was accepted.
  bool try_accept(socket& result, socket from);

 private:
  void open_spare();

  std::function<void(int)> on_shortage_;
  support::owned_descriptor spare_;  // closed so that one connection can be accepted and closed
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
