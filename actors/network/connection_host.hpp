// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe::network {

class tcp_scribe;

/// What a connection asks of the event loop that serves it. All of it is the leading network thread's.
class connection_host {
 public:
  /// Whether connections on this machine go on in shared memory.
  virtual bool shares_memory() const = 0;
  /// Has the network threads look at the connection's shared memory again and again, as long as there is traffic.
  virtual void watch(tcp_scribe* connection) = 0;
  /// Has the connection looked at no longer.
  virtual void forget(tcp_scribe* connection) = 0;
  /// Has the connection write and consume what it can, once what is under way is done.
  virtual void catch_up_soon(tcp_scribe* connection) = 0;

 protected:
  ~connection_host() = default;
};

}  // namespace troupe::network
