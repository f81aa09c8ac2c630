// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/gate/connection_gate_test.cpp
#pragma once

#include <optional>
#include <string>

namespace troupe::gate {

/// Which end of a TCP connection this process has.
enum class end { calling, called };

/// Why a connection is refused.
struct refusal {
  std::string why;         // the whole reason, without the address that the listener has
  bool has_ended = false;  // the other end has gone: nobody is left to be refused
};

/// Decides who may talk to a node. Every connection is asked about before a byte of it is read or written.
///   KG-1  with the rule `same_user`, both ends of a connection on loopback are sockets of one user, by the kernel's word. If the
///         kernel does not say whose the other end is, or if the other end has been closed, the connection is refused.
///   KG-2  the question is answered without waiting for the other end.
class connection_gate {
 public:
  enum class rule { anyone, same_user };

  explicit connection_gate(rule how) noexcept : rule_(how) {}

  rule how() const noexcept { return rule_; }
  /// Why the connection of this socket is refused; nothing if it is let in.
  std::optional<refusal> check(int socket, end which) const;

 private:
  rule rule_;
};

}  // namespace troupe::gate
