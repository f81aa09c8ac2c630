// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <cstddef>
#include <memory>
#include <string>

#include <troupe/actors/gate/endpoint.hpp>
#include <troupe/actors/gate/tls_session.hpp>
#include <troupe/actors/network/connection_channel.hpp>
#include <troupe/messages/expect.hpp>

namespace troupe::network {

/// Moves the bytes of one connection: first by the wire (the socket, with TLS or without), then by shared memory, if both ends
/// have it (see connection_channel). The owner keeps the socket open, and waits for its events.
///
///   state    meaning                                                  next state
///   proving  the two ends of a connection with TLS prove who they are  prove(): open
///   open     bytes come and leave                                     none
///
///   TP-1  in the state `proving` no byte comes, and none leaves.
///   TP-2  bytes come in the order in which they were written, also if some take the wire and others the memory.
///   TP-3  a connection over loopback is not paced: its congestion control is "reno", whatever the system's default is.
///   TP-4  no byte waits in the wire for later bytes, unless these go by the wire too.
class transport {
 public:
  using progress = gate::tls_session::progress;
  enum class state { proving, open };

  /// `secured`: the session of TLS over the socket; null: none.
  transport(int socket, std::unique_ptr<gate::tls_session> secured, bool shares_memory);

  state now() const noexcept { return secured_ != nullptr && !secured_->is_proven() ? state::proving : state::open; }
  /// The session of TLS; null without TLS.
  const gate::tls_session* secured() const noexcept { return secured_; }
  /// The address of the other end; known also when the other end has left.
  const std::string& there() const noexcept { return there_; }
  /// Goes on with the handshake of TLS, in which both ends prove who they are. Pre: the connection has TLS.
  progress prove() {
    TROUPE_EXPECT(secured_ != nullptr);
    return secured_->shake_hands();
  }

  /// As readv(2): bytes that come by the wire.
  ssize_t read(const iovec& first, const iovec& second);
  /// Reads bytes that are in memory; 0 if there are none. If the other end's counter is impossible, the connection is over.
  std::size_t read_memory(const iovec& to);
  /// As endpoint::write(): by memory once the outgoing direction has moved to memory, before that by the wire. The wire does
  /// not wait for bytes that may go by memory (TP-4).
  ssize_t write(const char* from, std::size_t bytes, bool goes_on);
  /// The socket, or TLS over it.
  gate::endpoint& wire() noexcept { return *wire_; }
  connection_channel& memory() noexcept { return memory_; }

  /// Tells the other end that no more bytes come.
  void end_writing() noexcept { ::shutdown(socket_, SHUT_WR); }
  /// Ends both directions. The owner then gets an event of the socket, by which it learns that the connection is over.
  void end() noexcept { ::shutdown(socket_, SHUT_RDWR); }

 private:
  const int socket_;
  const std::string there_;
  gate::tls_session* const secured_;  // points to the wire, if the wire has TLS
  const std::unique_ptr<gate::endpoint> wire_;
  connection_channel memory_;
};

}  // namespace troupe::network
