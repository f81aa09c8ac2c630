// SPDX-License-Identifier: BSD-3-Clause
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

/// One distributed pass on one node: the engine's state machine between bursts, the node's side of the protocol
/// (participant) and, on the node that called backward, the pass's (initiator). The actor is their shell: it unpacks messages, asks
/// the state machines and sends what they answer.
///   GA-1  at most one burst is away; gradients that arrive meanwhile wait for the next burst.
///   GA-2  the user's future is completed exactly once, at the latest a second after the pass's deadline.
///   GA-3  the gradients that it hands out are those of all bursts. The last burst may still be away when the pass is complete.
///   GA-4  after an abort the buffers of the task are freed before the answer leaves.
using graph_task_actor = caf::typed_actor<caf::reacts_to<support::start_atom>,  // the initiator's: the roots are ready
                                          caf::reacts_to<propagate_gradients>, caf::reacts_to<participant_quiet>,
                                          caf::reacts_to<participant_failed>, caf::replies_to<discover>::with<discovered>,
                                          caf::reacts_to<prune>, caf::replies_to<abort_pass>::with<pass_aborted>,
                                          caf::reacts_to<burst_ptr>,  // back from a worker
                                          caf::reacts_to<peer_down>,
                                          caf::replies_to<support::gradients_atom>::with<
                                            table_ptr>,  // the pass is complete: hands out its gradients, once (null: none)
                                          caf::reacts_to<support::deadline_atom>,
                                          caf::reacts_to<support::close_atom>>;  // the context is gone: stop, free everything

}  // namespace troupe::contracts

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::burst_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::table_ptr)
