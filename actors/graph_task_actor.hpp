// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/actors/atoms.hpp>
#include <troupe/actors/burst.hpp>
#include <troupe/actors/deadline_clock.hpp>
#include <troupe/actors/future.hpp>
#include <troupe/actors/membership.hpp>
#include <troupe/engine/protocol/initiator.hpp>
#include <troupe/engine/protocol/participant.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe {

class company;

/// One distributed pass on one node: the engine's state machine between bursts, the node's side of the protocol
/// (participant) and, on the node that called backward, the pass's (initiator). This is their shell: it unpacks, asks, sends.
///   GA-1  one burst is away at a time; gradients that arrive meanwhile wait for the next.
///   GA-2  the user's future is completed exactly once, at the latest a second after the pass's deadline.
///   GA-3  the gradients it hands out are those of all bursts: the last one may still be away when the pass is complete.
///   GA-4  after an abort its buffers are gone before the answer leaves.
using graph_task_actor = caf::typed_actor<
  caf::reacts_to<start_atom>,  // the initiator's: the roots are ready
  caf::reacts_to<propagate_gradients>, caf::reacts_to<participant_quiet>, caf::reacts_to<participant_failed>,
  caf::replies_to<discover>::with<discovered>, caf::reacts_to<prune>, caf::replies_to<abort_pass>::with<pass_aborted>,
  caf::reacts_to<burst_ptr>,  // back from a worker
  caf::reacts_to<peer_down>,
  caf::replies_to<take_atom>::with<table_ptr>,  // the pass is complete: hands out its gradients, once (null: none)
  caf::reacts_to<deadline_atom>,
  caf::reacts_to<close_atom>>;  // the context is gone: stop, free everything

/// How a pass is made.
struct pass_terms {
  context_id context;
  pass_number pass;
  bool keep_graph = false;
  bool create_graph = false;
  program_place place;  // with create_graph: of the pass
  std::unique_ptr<pass_task> task;
  caf::strong_actor_ptr owner;  // the context actor: told (failed_atom, pass)
  std::shared_ptr<std::atomic<bool>> stop = std::make_shared<std::atomic<bool>>(false);
  // the initiator's:
  std::shared_ptr<pass_outcome> outcome;      // null on other nodes
  std::optional<protocol::participant> part;  // the first burst is away already
  std::set<node_id> participants;             // nodes known to be in the context
  std::chrono::milliseconds deadline{0};
  deadline_clock::alarm expiry;  // set already, with `part`
  bool fast = false;
};
using pass_terms_ptr = std::shared_ptr<pass_terms>;

/// A burst of the pass, which takes the state machine along.
burst_ptr make_burst(pass_terms& terms, burst::kind what, protocol::participant::burst_terms carried);

/// Tells the task when the pass's deadline has passed.
deadline_clock::alarm set_deadline(company& here, const graph_task_actor& task, std::chrono::milliseconds deadline);

/// Runs the burst on this thread and returns it to `owner`. If it was the pass's last, the pass is complete when this returns.
void run_and_return(company& here, burst_ptr work, const graph_task_actor& owner);

struct graph_task_state {
  static inline const char* name = "graph_task";

  ~graph_task_state();

  company* here = nullptr;
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
graph_task_actor::behavior_type make_graph_task(Self self, company* here, pass_terms_ptr terms);

/// Spawns it where the company's control actors live.
graph_task_actor spawn_graph_task(company& here, pass_terms_ptr terms);

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::pass_terms_ptr)
