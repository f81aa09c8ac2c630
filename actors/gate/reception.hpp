// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/gate/reception_test.cpp
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <troupe/actors/gate/refusal.hpp>
#include <troupe/actors/gate/tls_session.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::gate {

class credentials;

/// A connection whose two ends have proven who they are.
struct proven_connection {
  support::owned_descriptor socket;
  std::unique_ptr<tls_session> session;
};

/// Runs the TLS handshakes of accepted connections on a thread of its own. So a flood of connections from strangers costs the
/// network threads nothing but the accepting. The thread begins with the first connection, and has a lower priority than other
/// threads of the process. A flood may be silent or stop in the middle of handshakes. Even then, later connections from the
/// host of the flood are taken in.
///   RN-1  a connection is handed over once both ends are proven, or is closed after `patience` at the latest. It is refused
///         with a reason, unless its caller has gone. The reason names the address that the connection had when it came.
///   RN-2  the thread serves at most `most` connections, and at most an eighth of the process's descriptors. As many again may
///         wait for the thread. If one more comes, the network with the most connections loses its oldest one, so a flood from
///         one host does not push out other hosts.
///   RN-3  a connection on which no byte has come takes a descriptor, but no memory for TLS.
///   RN-4  after the destructor no function of the owner is called. The destructor waits for a call that runs.
///   RN-5  a connection whose first bytes can't begin a handshake of TLS is refused at once. It takes no session of TLS, which
///         would cost more than all else, and gets no byte.
class reception {
 public:
  static constexpr std::chrono::milliseconds patience{5'000};
  /// If no byte has come within this time, the other end gets an alert of TLS. The other end may be a node without
  /// certificates, which waits for this end to begin. It learns from the alert that a handshake is expected.
  static constexpr std::chrono::milliseconds patience_for_first_byte{2'000};
  static constexpr std::size_t most = 256;

  /// Functions that the reception's thread calls. They must not throw.
  struct receivers {
    std::function<void(proven_connection, std::uint64_t listener)> proven;
    std::function<void(const refusal&)> refused;
  };

  reception(std::shared_ptr<const credentials> own, receivers to);
  ~reception();

  /// Hands an accepted connection to the reception's thread. `listener`: a number that the owner chooses, and gets again with
  /// the proven connection. Any thread may call it. Throws std::system_error if the system gives no thread.
  void admit(support::owned_descriptor socket, std::uint64_t listener);
  /// How many connections the thread serves. For tests.
  std::size_t open_handshakes() const;

 private:
  struct state;

  std::unique_ptr<state> state_;
};

}  // namespace troupe::gate
