// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/orderings_test.cpp, tests/actors/distributed_tensors_test.cpp, tests/actors/direct_reads_test.cpp
#pragma once

#include <cstdint>
#include <string>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <troupe/actors/contracts/context.hpp>
#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/contracts/workers.hpp>
#include <troupe/actors/support/atoms.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::contracts {

/// The gateway of a node: receives the messages of other nodes and routes them to membership, contexts, graph tasks and call
/// workers. The handlers of the gateway never wait, so nodes never wait for each other in a circle. When two nodes reach each
/// other again, one of them notices first. So messages may come from a node that is not up here yet (GW-19).
///   GW-1  a message for a context that is not open on this node starts nothing. Only a call, or a message to an actor, opens
///         the context.
///   GW-2  a late call does not open a released context again (see released_contexts).
///   GW-3  contexts of a node that is gone are released on this node.
///   GW-4  calls leave and answers return through this actor only: other nodes know one actor of a node, whatever the number of
///         contexts. The thread that has run a call sends a small answer itself, in the name of this actor.
///   GW-5  a call from a node that is down opens no context: the contexts of that node may be released already.
///   GW-6  a message with large tensors leaves when all pieces of its tensors have left, or were read out of this process. A
///         tensor that the other node reads at once is offered before the message, which then leaves without an answer. The
///         message arrives after its pieces. Other messages may overtake the message (see shipments).
///   GW-7  the receiver keeps no piece whose message will not come, because the call was given up or the sender is down.
///   GW-8  this node offers tensors only to a node that has sent it a memory_mark. A node reads the memory of another node only
///         if that node is up, on the same machine and in another process.
///   GW-9  a request to a node that goes down leaves nothing in memory. A call that is given up before its answer leaves
///         nothing either.
///   GW-10 every call in a context ends: by its answer, its deadline, the peer going down, or the release of the context.
///   GW-11 messages of a pass that ended or was aborted on this node start nothing.
///   GW-12 when a peer goes down, or is cut off from the node that opened a context, each other node that has a part of the
///         context tells the opener about its part. So the release by the opener also reaches a node of whose part only the
///         lost peer knew.
///   GW-13 a waiting call of another node (for its context, for gradients or for a worker) is refused when its caller goes
///         down, its context is released or its deadline passes. Nothing of the call stays in memory.
///   GW-14 at most settings::send_limit bytes of answers, and as many bytes of gradients, are under way to a node; answers of
///         calls that run already may exceed this. At the limit, gradients wait in their burst, and no call from the node
///         starts. Nothing else waits.
///   GW-15 a capacity_wish is fulfilled once the messages that were sent before the wish are written, and less than
///         settings::send_limit bytes wait to leave for the peer. The wish fails when the peer is down, and at its deadline.
///         The earlier messages have at least 100 ms to be written, even if the deadline is nearer.
///   GW-16 the actor ends only when its node stops. It does not end with an actor of a context or of a pass, however that actor
///         ends.
///   GW-17 the gateway knows its membership from the start: a greeting that arrives while the node still starts is answered
///         once the node listens. On a node without network, greetings and heartbeats get an error.
///   GW-18 with a policy, a node believes what a call says about the passes of the call's context if the caller opened the
///         context. A caller that had a part in the context before the call (RB-5) is believed if the pass numbers are
///         possible. Otherwise the node asks the opener, but only if gradients may wait here.
///   GW-19 a call whose context is not open here waits until its caller, and then the opener, is up here: for each of them
///         services::meeting_patience at most. A report to an initiator that is not up here waits for the same time, unless its
///         graph task ends before.
using gateway_actor = caf::typed_actor<
  // from other nodes
  caf::replies_to<hello, caf::strong_actor_ptr>::with<welcome>, caf::replies_to<heartbeat>::with<heartbeat_seen>,
  caf::reacts_to<farewell>, caf::reacts_to<gossip>, caf::replies_to<call_request>::with<call_result>,
  caf::reacts_to<propagate_gradients>, caf::reacts_to<participant_quiet>, caf::reacts_to<participant_failed>,
  caf::replies_to<discover>::with<discovered>, caf::reacts_to<prune>, caf::replies_to<abort_pass>::with<pass_aborted>,
  caf::reacts_to<context_joined>, caf::reacts_to<held_objects>, caf::replies_to<release_context>::with<context_released>,
  caf::replies_to<support::status_atom>::with<node_status>,
  caf::replies_to<support::status_atom, support::outline_atom>::with<node_status>,  // see node_status
  // the outline of the peer with this id, within a time (ns). This node asks the peer, for a client that reaches only this node
  caf::replies_to<support::status_atom, std::uint64_t, std::int64_t>::with<node_status>,
  caf::replies_to<support::find_atom, std::string>::with<caf::strong_actor_ptr>,  // an actor published under that name
  // CAF has read the elements already. The answer is the time of the reading (ns, clock of this process). The answer lets the
  // next piece leave
  caf::replies_to<tensor_piece>::with<std::int64_t>,
  caf::reacts_to<tensor_offer>,  // answered once this node has read the piece
  caf::replies_to<request_mark>::with<memory_mark>,
  // from this node
  caf::reacts_to<support::close_atom, context_id, context_actor>, caf::reacts_to<outgoing_call_ptr>,
  caf::reacts_to<outgoing_joint_ptr>, caf::reacts_to<support::deadline_atom, outgoing_call_ptr>,
  caf::reacts_to<support::deadline_atom, incoming_call_ptr>,  // the call still waits for a worker
  caf::reacts_to<support::leave_atom, incoming_call_ptr>,     // the call has not run: the calls before it take too long
  caf::reacts_to<support::arrived_atom, outgoing_call_ptr>, caf::reacts_to<outgoing_gradients_ptr>,
  caf::reacts_to<support::capacity_atom, capacity_wish_ptr>,  // the gateway sends it to itself again, to look again
  caf::reacts_to<incoming_call_ptr>,                          // a worker has run the call (incoming_call::worker)
  caf::reacts_to<incoming_offer_ptr>,                         // the elements were read, or the reading failed
  caf::reacts_to<host_copy_ptr>,
  caf::reacts_to<support::free_atom, call_worker_actor, std::uint32_t>,  // free worker, depth of its call; the result is late
  caf::reacts_to<support::tick_atom>,                                    // time to end workers that were idle for long
  caf::reacts_to<support::blocked_atom>, caf::reacts_to<support::resumed_atom>, caf::reacts_to<peer_up>,
  caf::reacts_to<peer_down>, caf::reacts_to<member_heard>, caf::reacts_to<member_out_of_reach>>;

}  // namespace troupe::contracts

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::context_id)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::context_record_ptr)
