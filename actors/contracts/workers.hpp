// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/replies_to.hpp>
#include <caf/response_promise.hpp>
#include <caf/typed_actor.hpp>

#include <troupe/actors/contracts/graph_task.hpp>
#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/actors/support/atoms.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/messages.hpp>

/// The actors that compute or copy. Each has a thread of its own where the node has a network.
namespace troupe::contracts {

/// Graphs and tensors to be freed outside of the control plane.
using garbage_ptr = std::shared_ptr<void>;

/// The node's compute thread for backward passes: runs the bursts of passes and adds gradients up.
///   CC-1  it owns a burst's state machine from the message that brings it to the one that returns it, and keeps nothing.
///   CC-2  every burst comes back, whatever its functions throw.
using cpu_continuation_actor = caf::typed_actor<
  caf::reacts_to<burst_ptr, graph_task_actor>,
  caf::replies_to<support::merge_atom, gradients_ptr, table_ptr>::with<gradients_ptr>,  // a new table with both summed
  caf::reacts_to<garbage_ptr>>;

/// A thread that runs one remote call at a time: it attaches the arguments to the graph, runs the registered function and attaches the
/// result.
///   CW-1  every call goes back to its owner, with a result or a failure that names node and function. If elements of the result are
///         late, the call goes back when they are there; the worker is free earlier.
///   CW-2  while the call blocks on a future the pool is told, before and after.
using call_worker_actor = caf::typed_actor<caf::reacts_to<incoming_call_ptr>>;

/// Elements to read out of another process's memory.
struct incoming_offer {
  tensor_offer offer;
  memory_mark given;
  caf::response_promise promise;  // delivered by `gateway` only
  std::optional<error> failure;
};
using incoming_offer_ptr = std::shared_ptr<incoming_offer>;

/// The thread that reads offered elements, one offer after another, so that the network thread copies none of them.
///   MR-1  every offer goes back to `gateway`, read or with a failure.
using memory_reader_actor = caf::typed_actor<caf::reacts_to<incoming_offer_ptr>>;

}  // namespace troupe::contracts

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::garbage_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::incoming_offer_ptr)
