// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/transport_test.cpp, tests/actors/gate/tls_session_test.cpp, tests/actors/network/connection_channel_test.cpp
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>

namespace troupe::gate {

/// A way that the bytes of a connection take: a socket, TLS over a socket, or memory that two processes share. No function
/// waits. A call that can't do its work yet fails with EAGAIN, as on a socket that does not block.
class endpoint {
 public:
  virtual ~endpoint() = default;

  /// As readv(2).
  virtual ssize_t read(const iovec& first, const iovec& second) = 0;
  /// As send(2). The bytes that it takes may leave later, by flush(). `goes_on`: further bytes follow at once, and these bytes
  /// may wait for them.
  virtual ssize_t write(const char* from, std::size_t bytes, bool goes_on) = 0;
  /// Sends bytes that write() has taken. False: bytes still wait here, or the connection is over; errno tells which, as after
  /// send(2).
  virtual bool flush() { return true; }
  /// Whether write() has taken bytes that still wait here.
  virtual bool has_unsent() const noexcept { return false; }
  /// Whether read() may return bytes that no event announces.
  virtual bool has_unread() const { return false; }
};

/// The socket itself. Its owner keeps it open.
class socket_endpoint final : public endpoint {
 public:
  explicit socket_endpoint(int socket) noexcept : socket_(socket) {}

  ssize_t read(const iovec& first, const iovec& second) override {
    const std::array<iovec, 2> to = {first, second};
    return ::readv(socket_, to.data(), to.size());
  }
  ssize_t write(const char* from, std::size_t bytes, bool goes_on) override {
    return ::send(socket_, from, bytes, MSG_NOSIGNAL | (goes_on ? MSG_MORE : 0));
  }

 private:
  const int socket_;
};

}  // namespace troupe::gate
