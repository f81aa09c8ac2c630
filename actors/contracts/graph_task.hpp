// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/orderings_test.cpp
#pragma once

#include <memory>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/support/atoms.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::passes {

struct burst;

}  // namespace troupe::passes

namespace troupe::contracts {

using burst_ptr = std::shared_ptr<passes::burst>;
using table_ptr = std::shared_ptr<engine::gradient_table>;

/// One distributed pass on one node. The actor holds three state machines: the engine's graph task, this node's part
/// in the protocol (participant) and, on the node that called backward, the whole pass (initiator).
///   GA-1  at most one burst runs; gradients that arrive meanwhile wait for the next burst.
///   GA-2  the user's future is completed exactly once, at the latest a second after the pass's deadline.
///   GA-3  gradients are handed out only after the last burst has returned: a pass may be complete while its last burst still
///         runs.
///   GA-4  the buffers of an aborted task are dropped before the answer to the abort leaves.
using graph_task_actor = caf::typed_actor<
  caf::reacts_to<support::start_atom>,  // on the initiator: run the roots
  caf::reacts_to<propagate_gradients>, caf::reacts_to<participant_quiet>, caf::reacts_to<participant_failed>,
  caf::replies_to<discover>::with<discovered>, caf::reacts_to<prune>, caf::replies_to<abort_pass>::with<pass_aborted>,
  caf::reacts_to<burst_ptr>,  // a worker has run the burst
  caf::reacts_to<peer_down>,
  caf::replies_to<support::gradients_atom>::with<table_ptr>,  // gradients of the complete pass, handed out once; null: there
                                                              // are none
  caf::reacts_to<support::deadline_atom>,
  caf::reacts_to<support::close_atom>>;  // stop and free everything

}  // namespace troupe::contracts

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::burst_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::table_ptr)
