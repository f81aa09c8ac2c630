// SPDX-License-Identifier: BSD-3-Clause
#include "tcp_floor.hpp"

#include <sys/socket.h>
#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "tcp_socket.hpp"

namespace troupe::bench {

namespace {

/// What the side that drives tells the other side before each series of round trips.
struct announcement {
  std::uint64_t trips = 0;
  std::uint64_t message = 0;  // bytes
  std::uint64_t answer = 0;   // bytes
};

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

void serve_echo(const std::function<void(std::uint16_t)>& tell_port, const std::string& address) {
  const auto listening = listening_socket(address, 0);
  tell_port(port_of(listening));
  const auto accepted = accepted_socket(listening);
  const int other = accepted.get();
  std::vector<char> data;
  announcement sizes;
  while (receive_all(other, reinterpret_cast<char*>(&sizes), sizeof sizes)) {
    data.resize(std::max(sizes.message, sizes.answer));
    for (; sizes.trips > 0; --sizes.trips)
      if (!receive_all(other, data.data(), sizes.message) || !send_all(other, data.data(), sizes.answer)) break;
  }
}

tcp_floor::tcp_floor(std::uint16_t port, const std::string& address) : socket_(connected_socket(address, port)) {}

double tcp_floor::seconds(int trips, std::size_t bytes, std::size_t answer) {
  std::vector<char> data(std::max(bytes, answer), 1);
  const announcement sizes{static_cast<std::uint64_t>(trips), bytes, answer};
  if (!send_all(socket_.get(), reinterpret_cast<const char*>(&sizes), sizeof sizes))
    throw std::runtime_error("the process that echoes is gone");
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < trips; ++i)
    if (!send_all(socket_.get(), data.data(), bytes) || !receive_all(socket_.get(), data.data(), answer))
      throw std::runtime_error("the process that echoes is gone");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace troupe::bench
