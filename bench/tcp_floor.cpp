// SPDX-License-Identifier: BSD-3-Clause
#include "tcp_floor.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <chrono>
#include <stdexcept>
#include <vector>

namespace troupe::bench {

namespace {

support::owned_descriptor new_socket() {
  support::owned_descriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!made || ::setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
    throw std::runtime_error("no socket can be made");
  return made;
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool send_all(int to, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    const auto sent = ::send(to, data, bytes, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int from, char* data, std::size_t bytes) {
  while (bytes > 0) {
    const auto got = ::recv(from, data, bytes, 0);
    if (got <= 0) return false;
    data += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

void serve_echo(const std::function<void(std::uint16_t)>& tell_port) {
  const auto listening = new_socket();
  auto address = loopback(0);
  socklen_t size = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listening.get(), plain, size) != 0 || ::listen(listening.get(), 1) != 0 ||
      ::getsockname(listening.get(), plain, &size) != 0)
    throw std::runtime_error("no port of loopback is free");
  tell_port(ntohs(address.sin_port));
  const support::owned_descriptor accepted(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const int other = accepted.get();
  const int on = 1;
  ::setsockopt(other, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::vector<char> data;
  std::uint64_t bytes = 0;
  while (receive_all(other, reinterpret_cast<char*>(&bytes), sizeof bytes)) {
    data.resize(bytes);
    std::uint64_t trips = 0;
    if (!receive_all(other, reinterpret_cast<char*>(&trips), sizeof trips)) break;
    for (; trips > 0; --trips)
      if (!receive_all(other, data.data(), bytes) || !send_all(other, data.data(), bytes)) break;
  }
}

tcp_floor::tcp_floor(std::uint16_t port) : socket_(new_socket()) {
  const auto address = loopback(port);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("the process that echoes does not answer");
}

double tcp_floor::seconds(int trips, std::size_t bytes) {
  std::vector<char> data(bytes, 1);
  const std::uint64_t announced[] = {bytes, static_cast<std::uint64_t>(trips)};
  if (!send_all(socket_.get(), reinterpret_cast<const char*>(announced), sizeof announced))
    throw std::runtime_error("the process that echoes is gone");
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < trips; ++i)
    if (!send_all(socket_.get(), data.data(), bytes) || !receive_all(socket_.get(), data.data(), bytes))
      throw std::runtime_error("the process that echoes is gone");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace troupe::bench
