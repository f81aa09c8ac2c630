// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <caf/actor_control_block.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/actors/burst.hpp>
#include <troupe/actors/deadline_clock.hpp>
#include <troupe/actors/graph_task_contract.hpp>
#include <troupe/actors/pass_terms.hpp>
#include <troupe/engine/protocol/initiator.hpp>
#include <troupe/engine/protocol/participant.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe {

class node_services;

/// Tells the task when the pass's deadline has passed.
deadline_clock::alarm set_deadline(node_services& here, const graph_task_actor& task, std::chrono::milliseconds deadline);

struct graph_task_state {
  static inline const char* name = "graph_task";

  ~graph_task_state();

  node_services* here = nullptr;
  pass_terms_ptr terms;
  std::optional<protocol::participant> part;
  std::optional<protocol::initiator> lead;
  std::vector<burst::delivery> deliveries;  // for the next burst
  std::vector<message_id> drops;            // likewise
  std::vector<message_id> walk_sends;       // to start the next walk from
  std::set<node_id> sent_to;
  std::set<std::string> heard_from;     // names of nodes that gradients came from
  std::map<node_id, std::string> down;  // nodes that went down while a burst was away, and how that reads
  std::vector<caf::typed_response_promise<pass_aborted>> abort_promises;
  std::vector<caf::typed_response_promise<discovered>> discover_promises;  // for the next walk
  std::vector<caf::typed_response_promise<discovered>> walk_promises;      // for the one that is away
  std::optional<caf::typed_response_promise<table_ptr>> take_promise;
  deadline_clock::alarm expiry;
  bool closed = false;
};

/// Behaviour for any host: a broker in the network thread, or an event-based actor.
template <class Self>
graph_task_actor::behavior_type make_graph_task(Self self, node_services* here, pass_terms_ptr terms);

/// Spawns it where the node's control actors live.
graph_task_actor spawn_graph_task(node_services& here, pass_terms_ptr terms);

}  // namespace troupe
