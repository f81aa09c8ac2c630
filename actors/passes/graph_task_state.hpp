// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <caf/actor_control_block.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/actors/contracts/graph_task.hpp>
#include <troupe/actors/network/own_actors.hpp>
#include <troupe/actors/passes/burst.hpp>
#include <troupe/actors/passes/pass_terms.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/engine/protocol/initiator.hpp>
#include <troupe/engine/protocol/participant.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::services {

class node_services;

}  // namespace troupe::services

namespace troupe::passes {

struct graph_task_state {
  static inline const char* name = "graph_task";

  ~graph_task_state();

  services::node_services* here = nullptr;
  network::own_actors::hold guard;  // other nodes answer its questions, and send it nothing else
  pass_terms_ptr terms;
  std::optional<protocol::participant> part;
  std::optional<protocol::initiator> lead;
  std::vector<burst::delivery> deliveries;  // for the next burst
  std::vector<message_id> drops;            // for the next burst
  std::vector<message_id> walk_sends;       // where the next walk starts
  std::set<node_id> sent_to;
  std::set<std::string> heard_from;     // names of the nodes that sent gradients to this node
  std::map<node_id, std::string> down;  // nodes that went down during a burst, with the text of the error
  std::vector<caf::typed_response_promise<pass_aborted>> abort_promises;
  std::vector<caf::typed_response_promise<discovered>> discover_promises;  // for the next walk
  std::vector<caf::typed_response_promise<discovered>> walk_promises;      // for the walk that runs
  std::optional<caf::typed_response_promise<contracts::table_ptr>> table_promise;
  support::deadline_clock::alarm expiry;
  bool closed = false;
  bool is_late = false;  // the deadline of the pass has passed
};

}  // namespace troupe::passes
