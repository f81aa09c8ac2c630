// SPDX-License-Identifier: BSD-3-Clause
#include "tcp_socket.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <stdexcept>
#include <utility>

namespace troupe::bench {

namespace {

bool send_at_once(const support::owned_descriptor& socket) {
  const int on = 1;
  return ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0;
}

}  // namespace

support::owned_descriptor new_socket() {
  support::owned_descriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made || !send_at_once(made)) throw std::runtime_error("no socket can be made");
  return made;
}

sockaddr_in socket_address(const std::string& address, std::uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(port);
  if (::inet_pton(AF_INET, address.c_str(), &result.sin_addr) != 1)
    throw std::runtime_error("'" + address + "' is no IPv4 address");
  return result;
}

support::owned_descriptor connected_socket(const std::string& address, std::uint16_t port) {
  auto made = new_socket();
  const auto other = socket_address(address, port);
  if (::connect(made.get(), reinterpret_cast<const sockaddr*>(&other), sizeof other) != 0)
    throw std::runtime_error("nobody answers at " + address + ":" + std::to_string(port));
  return made;
}

support::owned_descriptor listening_socket(const std::string& address, std::uint16_t port) {
  auto made = new_socket();
  const int on = 1;
  ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto own = socket_address(address, port);
  if (::bind(made.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 || ::listen(made.get(), 16) != 0)
    throw std::runtime_error("can't listen at " + address + ":" + std::to_string(port));
  return made;
}

std::uint16_t port_of(const support::owned_descriptor& listening) {
  sockaddr_in own{};
  socklen_t size = sizeof own;
  if (::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    throw std::runtime_error("a socket that listens has no address");
  return ntohs(own.sin_port);
}

support::owned_descriptor accepted_socket(const support::owned_descriptor& listening) {
  support::owned_descriptor made(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (made) send_at_once(made);
  return made;
}

}  // namespace troupe::bench
