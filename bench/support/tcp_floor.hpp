// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::bench {

/// Answers the messages of a bare TCP ping-pong. Listens at `address` (IPv4), tells its port, and takes one connection. Before its
/// messages the process that has connected names their sizes and those of the answers. Returns when the connection closes.
void serve_echo(const std::function<void(std::uint16_t)>& tell_port, const std::string& address = "127.0.0.1");

/// Round trips of bytes and nothing else: the cost of a row if only the network had a cost.
class tcp_floor {
 public:
  explicit tcp_floor(std::uint16_t port, const std::string& address = "127.0.0.1");

  /// The seconds for `trips` round trips, one after another, of `bytes` bytes each way.
  double seconds(int trips, std::size_t bytes) { return seconds(trips, bytes, bytes); }
  /// The same with answers of another size.
  double seconds(int trips, std::size_t bytes, std::size_t answer);

 private:
  support::owned_descriptor socket_;
};

}  // namespace troupe::bench
