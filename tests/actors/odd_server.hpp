// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::test {

/// A server on loopback that is not a node. Clients can connect, and each connection gets `banner` if `banner` is not empty.
/// `hang_up`: the server then closes the connection.
class odd_server {
 public:
  explicit odd_server(std::string banner = {}, bool hang_up = false) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(socket_.get(), 128) != 0 ||
        getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("odd_server: can't listen on loopback");
    port_ = ntohs(address.sin_port);
    if (!banner.empty() || hang_up) thread_ = std::thread([this, banner, hang_up] { serve(banner, hang_up); });
  }
  ~odd_server() {
    shutdown(socket_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }
  std::uint16_t port() const { return port_; }

 private:
  void serve(const std::string& banner, bool hang_up) {
    while (auto connection = support::owned_descriptor(accept(socket_.get(), nullptr, nullptr)))
      if (send(connection.get(), banner.data(), banner.size(), MSG_NOSIGNAL) >= 0 && !hang_up)
        open_.push_back(std::move(connection));
  }

  support::owned_descriptor socket_;
  std::uint16_t port_ = 0;
  std::vector<support::owned_descriptor> open_;
  std::thread thread_;
};

}  // namespace troupe::test
