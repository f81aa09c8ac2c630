// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::apps::test {

/// A port of loopback that is taken: a socket listens there and never sends a byte.
class loopback_socket {
 public:
  loopback_socket() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    if (!socket_ || bind(socket_.get(), plain, size) != 0 || listen(socket_.get(), 8) != 0 ||
        getsockname(socket_.get(), plain, &size) != 0)
      throw std::runtime_error("cannot listen on loopback");
    port_ = ntohs(address.sin_port);
  }

  /// Waits until someone has connected.
  bool is_called() const {
    pollfd watched{socket_.get(), POLLIN, 0};
    return poll(&watched, 1, 30'000) > 0;
  }

  std::string port() const { return std::to_string(port_); }

 private:
  support::owned_descriptor socket_;
  std::uint16_t port_ = 0;
};

}  // namespace troupe::apps::test
