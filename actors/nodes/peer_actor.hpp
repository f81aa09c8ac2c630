// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/actors/contracts/peer.hpp>

namespace troupe::nodes {

struct node_parts;

/// Spawns the node's `peer` actor: a broker in the network thread, or an event-based actor where the node has no network.
contracts::peer_actor spawn_peer(node_parts& parts);

}  // namespace troupe::nodes
