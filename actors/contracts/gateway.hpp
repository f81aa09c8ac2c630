// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

/// The node's gateway: receives the messages of other nodes and routes them to membership, contexts and call workers.
///   GW-1  a message for a context that is not open here starts nothing, except a call or a message to an actor, which opens the
///         context.
///   GW-2  a late call does not open a released context again (see released_contexts).
///   GW-3  contexts of a node that went down are released here.
///   GW-4  calls leave and answers return by way of this actor alone: one actor of a node that others know, however many
///         contexts.
///   GW-5  a call from a node that is down opens no context: everything of that node is cleaned up already.
///   GW-6  a message with large tensors leaves when their pieces have, or when they were read out of this process; others overtake
///         it (see outgoing_pieces). One thread hands it and its pieces to CAF's broker, and they are read from one connection in
///         that order.
///   GW-7  no piece stays with the receiver if its message does not leave any more, or if the sender is down.
///   GW-8  tensors are offered only to a node that said that it can read this process's memory. A node's memory is read only if the
///         node is up, on this machine and in another process.
///   GW-9  nothing stays of a request to a node that goes down, or of a call that was given up before its answer.
///   GW-10 every call in a context ends: with its answer, its deadline, the news that the peer is down, or the release.
///   GW-11 messages of a pass that ended or was aborted on this node start nothing.
///   GW-12 when a peer goes down, or is cut off from the node that opened a context, the other nodes that hold a part of the context tell
///         that node. So parts that only the lost peer knew of are released too.
using gateway_actor = caf::typed_actor<
  // from other nodes
  caf::replies_to<hello, caf::strong_actor_ptr>::with<welcome>, caf::replies_to<heartbeat>::with<heartbeat_seen>,
  caf::reacts_to<farewell>, caf::replies_to<call_request>::with<call_result>, caf::reacts_to<propagate_gradients>,
  caf::reacts_to<participant_quiet>, caf::reacts_to<participant_failed>, caf::replies_to<discover>::with<discovered>,
  caf::reacts_to<prune>, caf::replies_to<abort_pass>::with<pass_aborted>, caf::reacts_to<context_joined>,
  caf::replies_to<release_context>::with<context_released>, caf::replies_to<support::status_atom>::with<node_status>,
  caf::replies_to<support::find_atom, std::string>::with<caf::strong_actor_ptr>,  // an actor published under that name
  caf::reacts_to<tensor_piece>,  // read already; the answer lets another piece leave
  caf::reacts_to<tensor_offer>,  // answered once the piece is read
  caf::replies_to<request_mark>::with<memory_mark>,
  // from this node
  caf::reacts_to<membership_actor>,  // the node's membership; comes first
  caf::reacts_to<support::close_atom, context_id, context_actor>, caf::reacts_to<outgoing_call_ptr>,
  caf::reacts_to<outgoing_joint_ptr>, caf::reacts_to<support::deadline_atom, outgoing_call_ptr>,
  caf::reacts_to<support::arrived_atom, outgoing_call_ptr>, caf::reacts_to<outgoing_gradients_ptr>,
  caf::reacts_to<incoming_call_ptr>,   // done by a worker
  caf::reacts_to<incoming_offer_ptr>,  // read
  caf::reacts_to<support::free_atom, call_worker_actor>, caf::reacts_to<support::blocked_atom>,
  caf::reacts_to<support::resumed_atom>, caf::reacts_to<peer_up>, caf::reacts_to<peer_down>>;

}  // namespace troupe::contracts

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::context_id)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::context_record_ptr)
