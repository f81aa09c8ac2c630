// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::bench {

/// The other process of a bare TCP ping-pong on loopback. Tells its port, then sends back everything that comes on one
/// connection, in messages of the size that the other side names first, until the connection closes.
void serve_echo(const std::function<void(std::uint16_t)>& tell_port);

/// Round trips of bytes and nothing else: the cost of a row if only the network had a cost.
class tcp_floor {
 public:
  explicit tcp_floor(std::uint16_t port);

  /// The seconds for `trips` round trips, one after another, of `bytes` bytes each way.
  double seconds(int trips, std::size_t bytes);

 private:
  support::owned_descriptor socket_;
};

}  // namespace troupe::bench
