// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/gate/connection_gate_test.cpp
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <troupe/actors/gate/refusal.hpp>
#include <troupe/actors/rights/policy.hpp>
#include <troupe/messages/expect.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::gate {

class credentials;

/// Decides who may talk to a node. The gate is asked about every connection before a byte of the connection is read or written.
///   KG-1  with the rule `same_user`, a connection is let in only if both ends are on loopback and the kernel says that both
///         sockets belong to one user. It is refused if the kernel names no user of the other end, or the other end is closed.
///   KG-2  check() does not wait for the other end.
class connection_gate {
 public:
  /// `certificates`: check() refuses nobody. Instead, both ends prove who they are by a tls_session with proof().
  enum class rule { anyone, same_user, certificates };

  /// Pre: `how` is not `certificates`.
  explicit connection_gate(rule how) noexcept : rule_(how) { TROUPE_EXPECT(how != rule::certificates); }
  /// `policy`: what the roles of the cluster may do. Null: the node has no policy, and every role may do everything.
  explicit connection_gate(std::shared_ptr<credentials> own, std::shared_ptr<rights::policy_file> policy = nullptr) noexcept
      : rule_(rule::certificates), proof_(std::move(own)), policy_(std::move(policy)) {}

  rule how() const noexcept { return rule_; }
  /// Null unless the rule is `certificates`.
  const std::shared_ptr<credentials>& proof() const noexcept { return proof_; }
  const std::shared_ptr<rights::policy_file>& policy() const noexcept { return policy_; }
  /// Why the connection of this socket is refused; nothing if it is let in.
  std::optional<refusal> check(int socket, end which) const;

 private:
  rule rule_;
  std::shared_ptr<credentials> proof_;
  std::shared_ptr<rights::policy_file> policy_;
};

/// The configuration of an actor system whose network asks a gate.
class gate_owner {
 public:
  virtual const connection_gate& gate() const noexcept = 0;
  /// Called, by any thread, with an id that a node has given up (IO-2 of introduced_nodes).
  virtual void give_up(node_id who) const = 0;

 protected:
  ~gate_owner() = default;
};

}  // namespace troupe::gate
