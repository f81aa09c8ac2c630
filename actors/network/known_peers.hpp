// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/gate/forged_senders_test.cpp, tests/actors/network/peer_messages_test.cpp
#pragma once

#include <memory>
#include <string>

#include <caf/fwd.hpp>

#include <troupe/actors/certificates/identity.hpp>
#include <troupe/actors/gate/introduced_nodes.hpp>
#include <troupe/actors/network/node_ids.hpp>
#include <troupe/actors/network/own_actors.hpp>
#include <troupe/actors/rights/policy.hpp>
#include <troupe/messages/expect.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::network {

/// What the connections of one network know together: who the other nodes are, and what the own node is made of. Any thread may use it.
struct known_peers {
  /// Keeps others from taking the ids of this node. Pre: no connection has been made.
  void introduce_self(const certificates::identity& who, node_id own_node, const caf::node_id& process) {
    TROUPE_EXPECT(own_id == nullptr);
    introduced->introduce(who, own_node);
    introduced->accept(own_node);
    own_id = ids->take(bytes_of(process), who);
  }

  /// The nodes that have introduced themselves by connections with certificates.
  std::shared_ptr<gate::introduced_nodes> introduced = std::make_shared<gate::introduced_nodes>();
  /// The nodes of CAF that are connected with certificates.
  std::shared_ptr<node_ids> ids = std::make_shared<node_ids>();
  std::shared_ptr<own_actors> own = std::make_shared<own_actors>();
  /// What the roles of the cluster may do here; null: nobody has said it.
  std::shared_ptr<const rights::policy_file> policy = nullptr;
  node_ids::hold own_id = nullptr;  // with certificates
};

}  // namespace troupe::network
