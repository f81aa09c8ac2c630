// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::test {

/// A connection to a port of loopback that sends any bytes, for tests of servers.
class http_client {
 public:
  explicit http_client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const timeval patience{20, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (!socket_ || ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("cannot connect to port " + std::to_string(port));
  }

  /// False if the other end has closed the connection, or takes no byte for 20 s.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// All that comes until the other end closes the connection. Throws std::runtime_error if nothing comes for 20 s.
  std::string rest() {
    std::string result;
    char buffer[4096];
    for (;;) {
      const auto got = ::recv(socket_.get(), buffer, sizeof buffer, 0);
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) throw std::runtime_error("nothing came for 20 s");
      if (got <= 0) return result;
      result.append(buffer, static_cast<std::size_t>(got));
    }
  }

  /// The whole answer to a request.
  static std::string ask(std::uint16_t port, const std::string& path, const std::string& method = "GET") {
    http_client client(port);
    client.send(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return client.rest();
  }

 private:
  support::owned_descriptor socket_;
};

/// What follows the header of an answer.
inline std::string body_of(const std::string& answer) {
  const auto end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

}  // namespace troupe::test
