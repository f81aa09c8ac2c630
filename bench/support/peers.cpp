// SPDX-License-Identifier: BSD-3-Clause
#include "peers.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include <caf/error.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/middleman.hpp>
#include <caf/send.hpp>

#ifndef TROUPE_GRPC_ECHO
#define TROUPE_GRPC_ECHO ""
#endif

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

caf_link::config::config() { load<caf::io::middleman>(); }

void serve_caf_echo(const std::string& address, const std::function<void(std::uint16_t)>& tell_port,
                    const std::function<void()>& until) {
  caf::actor_system_config config;
  config.load<caf::io::middleman>();
  caf::actor_system system(config);
  const auto echo =
    system.spawn([](caf::event_based_actor*) -> caf::behavior { return {[](std::string& text) { return std::move(text); }}; });
  const auto port = system.middleman().publish(echo, 0, address.c_str());
  if (!port) throw std::runtime_error("CAF can't listen at " + address + ": " + system.render(port.error()));
  tell_port(*port);
  until();
  caf::anon_send_exit(echo, caf::exit_reason::user_shutdown);
}

caf_link::caf_link(const std::string& address, std::uint16_t port) {
  auto found = system_.middleman().remote_actor(address, port);
  if (!found) throw std::runtime_error("CAF does not reach the other process: " + system_.render(found.error()));
  echo_ = std::move(*found);
}

void caf_asker::wait() {
  open_.front().receive(
    [](const std::string&) {},
    [](const caf::error& reason) { throw std::runtime_error("a request of CAF failed: " + caf::to_string(reason)); });
  open_.pop_front();
}

bool has_grpc() { return *TROUPE_GRPC_ECHO != '\0'; }

std::string grpc_program() {
  if (!has_grpc()) throw std::runtime_error("the benchmark was built without gRPC");
  return TROUPE_GRPC_ECHO;
}

std::string tensorpipe_program() { return TROUPE_TENSORPIPE_ECHO; }

std::vector<double> times_of_echo(const std::string& program, const std::vector<std::string>& lines, int runs) {
  std::vector<double> taken;
  for (const auto& line : lines) {  // a log of the library may stand between them
    char* end = nullptr;
    const double time = std::strtod(line.c_str(), &end);
    if (!line.empty() && *end == '\0') taken.push_back(time);
  }
  if (taken.size() != static_cast<std::size_t>(runs))
    throw std::runtime_error(program + " wrote " + std::to_string(taken.size()) + " times, expected " + std::to_string(runs));
  return taken;
}

}  // namespace troupe::bench
