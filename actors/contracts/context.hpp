// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/actors/support/atoms.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::contracts {

/// A backward pass that a user asks for.
struct backward_job {
  torch::autograd::edge_list roots;
  std::vector<at::Tensor> gradients;
  bool keep_graph = false;
  bool create_graph = false;
  bool fast = false;
  program_place place;
  engine::recording recorded;  // what the thread that calls backward has recorded
  std::chrono::milliseconds deadline{0};
  future<done> result;
  ~backward_job() { result.set_error(error(errc::stopping, "the context was released, or its node has stopped")); }
};
using backward_job_ptr = std::shared_ptr<backward_job>;

/// Gathers the gradients of a distributed autograd context on one node, and starts the passes that have to wait for them. What
/// threads and other actors ask for is in the context's record; messages of passes go from `gateway` to the pass's graph task.
///   CO-1  a pass's gradients join the context's only when the pass is known to be complete, in the order of the passes. Every call
///         carries the numbers of failed passes: a node that heard of no abort drops the gradients of such a pass. If gradients
///         can't be added up, every later request for gradients fails; they are never left out in silence.
///   CO-2  one pass runs at a time; a second one is refused while it does.
///   CO-5  after the release no send, gradient or graph task of the context is left.
///   CO-7  a request for gradients that waits at the release fails, also that of a call that is about to run.
///   CO-8  no later pass changes gradients that the context has handed out.
using context_actor = caf::typed_actor<
  caf::reacts_to<backward_job_ptr>,                               // a pass that has to wait for gradients of earlier passes
  caf::replies_to<support::gradients_atom>::with<gradients_ptr>,  // gathered so far, up to the last completed pass
  caf::reacts_to<gradients_wish_ptr>,                             // likewise, as a future
  caf::replies_to<pass_history_ptr>::with<gradients_ptr>,         // likewise, with this history of passes
  caf::reacts_to<support::close_atom>>;  // the context is released on this node: release it on its peers

}  // namespace troupe::contracts

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::backward_job_ptr)
