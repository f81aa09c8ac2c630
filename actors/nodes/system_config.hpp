// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <caf/actor_system_config.hpp>

#include <troupe/actors/gate/connection_gate.hpp>
#include <troupe/messages/arriving_tensors.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe {

struct settings;

}  // namespace troupe

namespace troupe::nodes {

/// How troupe sets up CAF: every message type is registered, the network threads serve the node, no file or command line is
/// read.
///   SC-1  only these constructors set CAF's settings. CAF reads no caf-application.ini in the working folder, and no option of
///         the program.
///   SC-2  CAF never cuts a live connection because of silence: the heartbeats of membership decide who is up.
class system_config : public caf::actor_system_config, public tensor_receiver, public gate::gate_owner {
 public:
  /// Chooses the deterministic scheduler (caf::scheduler::test_coordinator) and leaves the network out.
  struct for_tests {};

  /// Throws troupe::error (misuse) if the certificates of the settings can't be used.
  explicit system_config(const settings& options);
  explicit system_config(for_tests);

  /// Decides who may connect to the nodes of the system, and to whom they connect.
  const gate::connection_gate& gate() const noexcept override { return gate_; }
  /// Drops the tensors that have come from node `who`.
  void give_up(node_id who) const override { arriving().drop(who); }

 private:
  gate::connection_gate gate_{gate::connection_gate::rule::same_user};
};

}  // namespace troupe::nodes
