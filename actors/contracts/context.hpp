// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/support/atoms.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::contracts {

/// A backward pass that a user asks for.
struct backward_job {
  torch::autograd::edge_list roots;
  std::vector<at::Tensor> gradients;
  bool keep_graph = false;
  bool create_graph = false;
  bool fast = false;
  program_place place;
  engine::recording recorded;  // by the thread that calls backward
  std::chrono::milliseconds deadline{0};
  future<done> result;
  ~backward_job() { result.set_error(error(errc::stopping, "the context was released, or its node has stopped")); }
};
using backward_job_ptr = std::shared_ptr<backward_job>;

/// A distributed autograd context on one node: its sends, the nodes it reached from here, the gradients it gathered, and the
/// current pass.
///   CO-1  a pass's gradients join the context's only when the pass is known to be complete, in the order of the passes. Which
///         passes failed rides along with every call: a node that heard of no abort drops what such a pass left there.
///         Gradients that can't be added up fail whoever asks for them, from then on; they are never left out in silence.
///   CO-2  one pass runs at a time; a second one is refused while it does.
///   CO-3  every call in it ends: with its answer, its deadline, the news that the peer is down, or the release. (`peer` sees
///         to it.)
///   CO-4  messages of a pass that ended or was aborted on this node start nothing.
///   CO-5  after its release nothing of it is left: sends, gradients, graph tasks.
///   CO-6  when a peer goes down or is cut off from the node that opened the context, those that hold a part of it say so to
///         that node: what only that peer knew of is released all the same.
///   CO-7  who waits for gradients when it is released, a call that is about to run included, is told so.
///   CO-8  gradients that it handed out are values: no later pass changes them.
using context_actor = caf::typed_actor<
  // from this node
  caf::reacts_to<backward_job_ptr>,                          // a pass that has to wait for gradients of earlier ones
  caf::replies_to<support::take_atom>::with<gradients_ptr>,  // gathered so far, up to the last completed pass
  caf::reacts_to<gradients_wish_ptr>,                        // the same
  caf::replies_to<pass_history_ptr>::with<gradients_ptr>,    // the same, now that this is known
  caf::reacts_to<incoming_call_ptr>,                         // is to have the gradients, then goes to `peer` to run
  caf::reacts_to<support::failed_atom, pass_number>,         // the graph task: a pass started here has failed
  caf::reacts_to<peer_down>,
  caf::reacts_to<support::close_atom>,  // the scope is left here: release everywhere
  // from other nodes, by way of `peer`
  caf::reacts_to<propagate_gradients>, caf::reacts_to<participant_quiet>, caf::reacts_to<participant_failed>,
  caf::replies_to<discover>::with<discovered>, caf::reacts_to<prune>, caf::replies_to<abort_pass>::with<pass_aborted>,
  caf::reacts_to<context_joined>, caf::replies_to<release_context>::with<context_released>>;

}  // namespace troupe::contracts

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::backward_job_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::pass_number)
