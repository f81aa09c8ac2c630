// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace troupe::bench {

/// The other process of a bare TCP ping-pong on loopback: tells its port, then sends back what one connection brings, in
/// messages of the size that the other side names first, until that closes.
void serve_echo(const std::function<void(std::uint16_t)>& tell_port);

/// Round trips of bytes and nothing else: what a row would cost if only the network did.
class tcp_floor {
 public:
  explicit tcp_floor(std::uint16_t port);
  ~tcp_floor();
  tcp_floor(const tcp_floor&) = delete;
  tcp_floor& operator=(const tcp_floor&) = delete;

  /// Seconds for so many round trips, one after another, of so many bytes each way.
  double seconds(int trips, std::size_t bytes);

 private:
  int socket_ = -1;
};

}  // namespace troupe::bench
